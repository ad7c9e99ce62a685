package site

import "testing"

// A call that hands something out through memory:
//
//	0: test %rdi,%rdi ; 3: je 5 ; 5: mov %rax,0x18(%rdi) ; 9: ret
//
// The jump is cheap and passed once by every return, but the result is not there yet.
var handsOut = Function{Arch: AMD64, Address: 0x1000, Code: []byte{0x48, 0x85, 0xff, 0x74, 0x00, 0x48, 0x89, 0x47, 0x18, 0xc3}}

func TestResultsAreReadAfterTheyWereWritten(t *testing.T) {
	exits, err := PlanExits(handsOut, false)
	if err != nil || len(exits) != 1 || exits[0].Offset != 3 {
		t.Fatalf("the cheapest exit: %+v, %v, want the jump at 3", exits, err)
	}
	results, err := PlanResults(handsOut)
	if err != nil || len(results) != 1 || results[0].Offset != 9 || results[0].Cost != CostStepped {
		t.Errorf("where the result can be read: %+v, %v, want the return at 9", results, err)
	}
	entry, err := PlanEntry(handsOut, Need{Args: 1, Before: 3})
	if err != nil || entry.Offset != 0 {
		t.Errorf("an entry before the jump: %+v, %v, want the first instruction", entry, err)
	}
}

func TestAReturnedValueIsReadOnceItIsWritten(t *testing.T) {
	//	0: test %rdi,%rdi ; 3: je 5 ; 5: mov %edi,%eax ; 7: ret
	late := Function{Arch: AMD64, Address: 0x1000, Code: []byte{0x48, 0x85, 0xff, 0x74, 0x00, 0x89, 0xf8, 0xc3}}
	if exits, err := PlanReturned(late); err != nil || len(exits) != 1 || exits[0].Offset != 7 {
		t.Errorf("written after the jump: %+v, %v, want the return at 7", exits, err)
	}
	//	0: mov %edi,%eax ; 2: test %rdi,%rdi ; 5: je 7 ; 7: ret
	early := Function{Arch: AMD64, Address: 0x1000, Code: []byte{0x89, 0xf8, 0x48, 0x85, 0xff, 0x74, 0x00, 0xc3}}
	if exits, err := PlanReturned(early); err != nil || len(exits) != 1 || exits[0].Offset != 5 || exits[0].Cost != CostEmulated {
		t.Errorf("written before the jump: %+v, %v, want the jump at 5", exits, err)
	}
	//	0: jmp 0x2000
	tail := Function{Arch: AMD64, Address: 0x1000, Code: []byte{0xe9, 0xfb, 0x0f, 0, 0},
		FunctionStart: func(at uint64) bool { return at == 0x2000 }}
	if exits, err := PlanReturned(tail); err == nil {
		t.Errorf("a function that another one returns for: %+v", exits)
	}
}

func TestTheEndOfAFunctionIsBehindItsLoops(t *testing.T) {
	//	0: test %edi,%edi ; 2: jle 8 ; 4: dec %edi ; 6: jg 4 ; 8: ret
	loops := Function{Arch: AMD64, Address: 0x1000, Code: []byte{0x85, 0xff, 0x7e, 0x04, 0xff, 0xcf, 0x7f, 0xfc, 0xc3}}
	if exits, err := PlanExits(loops, true); err != nil || len(exits) != 1 || exits[0].Offset != 2 {
		t.Fatalf("the cheapest exit: %+v, %v, want the jump at 2", exits, err)
	}
	if exits, err := PlanEnds(loops); err != nil || len(exits) != 1 || exits[0].Offset != 8 {
		t.Errorf("the end: %+v, %v, want the return at 8", exits, err)
	}
}
