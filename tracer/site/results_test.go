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
