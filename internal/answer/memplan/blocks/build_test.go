package blocks

import (
	"math/rand/v2"
	"testing"
)

func event(ns int64, action Action, address, bytes int64) Event {
	return Event{TSNS: ns, Action: action, Address: address, Bytes: bytes, Allocated: Unknown, Reserved: Unknown, Duration: Unknown, Weight: 1}
}

// TestBlocksFollowEvents: births, deaths, ticks, and each way in which events do
// not fit together.
func TestBlocksFollowEvents(t *testing.T) {
	arenas := []Arena{{PID: 1, Space: "device", Device: 0}, {PID: 1, Space: "device", Device: 1}}
	other := event(15, Alloc, 100, 7)
	other.Arena = 1
	lives := Build(arenas, []Event{
		event(10, Alloc, 100, 64), other, // the same address on another device
		event(20, Alloc, 200, 32),
		event(30, Free, 999, 8),        // older than the recording
		event(40, Free, 998, Unknown),  // older, and of an unknown size
		event(50, Alloc, 200, 16),      // its free was lost
		event(60, Alloc, 300, Unknown), // no size
		event(70, Free, 100, 64),
		event(80, OutOfMemory, 0, 1<<40),
	})
	if len(lives) != 2 {
		t.Fatalf("%d arenas", len(lives))
	}
	l := lives[0]
	if l.FreedUnknown != 2 || l.Reused != 1 || l.NoSize != 1 || l.OutOfMemory != 1 || !l.Partial() {
		t.Errorf("problems: %+v", l.Problems)
	}
	want := []Block{{Address: 100, Born: 1, Died: 7}, {Address: 200, Born: 2, Died: 5}, {Address: 999, Born: 0, Died: 3},
		{Address: 200, Born: 5, Died: Alive}}
	if len(l.Blocks) != len(want) {
		t.Fatalf("%d blocks: %+v", len(l.Blocks), l.Blocks)
	}
	for i, w := range want {
		if b := l.Blocks[i]; b.Address != w.Address || b.Born != w.Born || b.Died != w.Died {
			t.Errorf("block %d: %+v, want %+v", i, b, w)
		}
	}
	// 8 of before the recording, 64 and 32.
	if l.Peak != 104 || l.PeakTick != 2 || l.PeakNS != 20 {
		t.Errorf("peak %d at tick %d, %d ns", l.Peak, l.PeakTick, l.PeakNS)
	}
	if lives[1].Peak != 7 || lives[1].Partial() {
		t.Errorf("the other device: %+v", lives[1])
	}
	if got := Build(nil, nil); len(got) != 0 {
		t.Errorf("an empty recording: %v", got)
	}
}

// TestPeakIsTheRunningSum, and the curve reaches it, over random events.
func TestPeakIsTheRunningSum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var events []Event
		live, sizes := map[int64]int64{}, int64(0)
		var peak int64
		for ns := int64(1); ns < 400; ns++ {
			address := r.Int64N(40)
			if bytes, is := live[address]; is {
				events = append(events, event(ns, Free, address, bytes))
				sizes -= bytes
				delete(live, address)
				continue
			}
			live[address] = 1 + r.Int64N(1000)
			events = append(events, event(ns, Alloc, address, live[address]))
			sizes += live[address]
			peak = max(peak, sizes)
		}
		l := Build([]Arena{{}}, events)[0]
		var highest, alive int64
		for _, p := range l.Curve(30) {
			highest = max(highest, p.Max)
		}
		for _, i := range l.At(l.PeakTick) {
			alive += l.Blocks[i].Bytes
		}
		if l.Peak != peak || highest != peak || alive != peak {
			t.Fatalf("peak %d, curve %d, blocks at it %d; running sum %d", l.Peak, highest, alive, peak)
		}
		var final int64
		l.Walk(func(_, _, now int64) { final = now })
		if final != sizes || l.Partial() {
			t.Fatalf("%d live at the end, running sum %d", final, sizes)
		}
	}
}
