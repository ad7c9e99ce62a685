package progress

import "testing"

func TestAThreadIsReadWhereItsNumberIs(t *testing.T) {
	const bias, pointer, vector, number = 0x7f0000000000, 0x7f1000, 0x5000, 0x9000 + 0x20
	word := tlsWord{pair: 0x100}
	memory := words{bias + 0x100: 3, bias + 0x108: 0x20, pointer + 8: vector, vector - 16: 20, vector + 3*16: dtvUnallocated}
	thread := &countedThread{pointer: pointer}
	look := func(sweep bool) {
		t.Helper()
		if err := thread.look(memory, word, bias, sweep); err != nil {
			t.Fatal(err)
		}
	}
	look(true)
	if thread.number != 0 || thread.address != 0 {
		t.Errorf("a thread without the library's block: number %d at %#x", thread.number, thread.address)
	}
	memory[vector+3*16], memory[number] = 0x9000, 17
	look(false)
	if thread.number != 17 || thread.still != 0 {
		t.Errorf("number %d, still for %d sweeps; want 17 and 0", thread.number, thread.still)
	}
	look(false) // no sweep: it may only be between two nodes
	for range 3 {
		look(true)
	}
	if thread.still != 3 {
		t.Errorf("still for %d sweeps, want 3", thread.still)
	}
	memory[number] = 18
	look(true)
	if thread.number != 18 || thread.still != 0 {
		t.Errorf("number %d, still for %d sweeps; want 18 and 0", thread.number, thread.still)
	}
	memory[number] = mostNodes + 1
	if err := thread.look(memory, word, bias, true); err == nil || thread.number != 18 {
		t.Errorf("a word that is no number of nodes is taken for %d: %v", thread.number, err)
	}
	delete(memory, number)
	if err := thread.look(memory, word, bias, true); err == nil {
		t.Error("a thread whose storage is gone can be read")
	}
}

func TestWhatEndedThreadsMadeCounts(t *testing.T) {
	c := &NodeCounter{processes: map[int]*countedProcess{}}
	if nodes, known := (*NodeCounter)(nil).Read(millisecond(0), nil, nil); known || nodes != 0 {
		t.Errorf("without a counter: %d nodes, known: %t", nodes, known)
	}
	if _, known := c.Read(millisecond(0), func(func(Library) bool) {}, nil); known {
		t.Error("a job without a process that counts is known")
	}
	c.processes[7] = &countedProcess{threads: map[int32]*countedThread{7: {base: 100, number: 150}, 8: {number: 5}}}
	if !c.Counting() {
		t.Error("it does not count")
	}
	for range 2 {
		if nodes, known := c.Read(millisecond(1), func(func(Library) bool) {}, nil); nodes != 55 || !known {
			t.Errorf("%d nodes, known: %t; want the 50 since the process was seen and 5 of a new thread", nodes, known)
		}
	}
}
