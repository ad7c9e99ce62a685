package site

import (
	"errors"
	"slices"
	"testing"
)

// Addresses outside the test functions.
const (
	fnReturns  = 0x9000 // a function that returns and may throw
	fnNever    = 0x9100 // __stack_chk_fail: never returns, does not throw
	fnThrows   = 0x9200 // __cxa_throw: never returns, throws
	fnLeaf     = 0x9300 // free
	testOrigin = 0x1000
)

func testFunction(tb testing.TB, arch Arch, text string) Function {
	return Function{Arch: arch, Address: testOrigin, Code: code(tb, text),
		FunctionStart: func(a uint64) bool { return a >= fnReturns && a&0xff == 0 },
		NoReturn:      func(a uint64) bool { return a == fnNever || a == fnThrows },
		Leaf:          func(a uint64) bool { return a == fnLeaf || a == fnNever }}
}

func TestExitSites(t *testing.T) {
	for _, c := range []struct {
		claim   string
		arch    Arch
		code    string
		stepped bool
		offsets []uint64
		down    int32
		known   bool
		cost    Cost
		tail    bool
		calls   bool
		err     error
	}{
		{claim: "the stack protector's jump is the site", code: `
			48 83 ec 18                # 0 sub $24,%rsp
			ff d0                      # 4 call *%rax
			64 48 2b 04 25 28 00 00 00 # 6 sub %fs:40,%rax
			75 05                      # 15 jne 22
			48 83 c4 18                # 17
			c3                         # 21
			e8 e5 80 00 00             # 22 call __stack_chk_fail`,
			offsets: []uint64{15}, down: 24, known: true, cost: CostEmulated},
		{claim: "a call that may throw after the site is told", code: `
			ff d0                      # 0 call *%rax
			75 05                      # 2 jne 9
			e8 f7 7f 00 00             # 4 call 0x9000
			c3                         # 9`,
			offsets: []uint64{2}, known: true, cost: CostEmulated, calls: true},
		{claim: "a call that cannot throw is not", code: `
			ff d0                      # 0
			75 05                      # 2 jne 9
			e8 f7 82 00 00             # 4 call free
			c3                         # 9`,
			offsets: []uint64{2}, known: true, cost: CostEmulated},
		{claim: "nothing before an indirect call is a site", code: `
			75 02                      # 0 jne 4
			ff d0                      # 2
			c3                         # 4`,
			err: ErrNoExitSite},
		{claim: "the return itself is, where that is allowed", code: `
			75 02
			ff d0
			c3`,
			stepped: true, offsets: []uint64{4}, known: true, cost: CostStepped},
		{claim: "a loop holds no site", code: `
			ff d0                      # 0
			ff c8                      # 2 dec %eax
			75 fa                      # 4 jne 0
			c3                         # 6`,
			err: ErrNoExitSite},
		{claim: "two returns get one site where one dominates both", code: `
			ff d0                      # 0
			74 01                      # 2 je 5
			c3                         # 4
			c3                         # 5`,
			offsets: []uint64{2}, known: true, cost: CostEmulated},
		{claim: "two returns with work before each get a site each", code: `
			74 05                      # 0 je 7
			ff d0                      # 2
			74 06                      # 4 je 12
			c3                         # 6
			ff d1                      # 7
			74 01                      # 9 je 12
			c3                         # 11
			c3                         # 12`,
			offsets: []uint64{4, 9}, known: true, cost: CostEmulated},
		{claim: "a direct tail call is its own site", code: `
			ff d0                      # 0
			e9 f9 7f 00 00             # 2 jmp 0x9000`,
			offsets: []uint64{2}, known: true, cost: CostEmulated, tail: true},
		{claim: "an indirect tail call does the work after any cheap site", code: `
			48 8b 07                   # 0 mov (%rdi),%rax
			75 00                      # 3 jne 5
			ff e0                      # 5 jmp *%rax`,
			err: ErrNoExitSite},
		{claim: "an indirect tail call is stepped itself where that is allowed", code: `
			48 8b 07
			75 00
			ff e0`,
			stepped: true, offsets: []uint64{5}, known: true, cost: CostStepped, tail: true},
		{claim: "a jump with unknown targets proves nothing", code: `
			48 63 04 82                # 0 movslq (%rdx,%rax,4),%rax
			48 01 d0                   # 4 add %rdx,%rax
			ff e0                      # 7
			c3`,
			err: ErrIndirectJump},
		{claim: "a jump out of the known code may come back", code: "ff d0 e9 00 10 00 00",
			err: ErrLeavesFunction},
		{claim: "a jump into an instruction is an error", code: "75 01 b8 00 00 00 00 c3",
			err: ErrUndecodable},
		{claim: "a function that only throws never returns", code: "e8 fb 81 00 00",
			err: ErrNeverReturns},
		{claim: "a landing pad that returns past the site refuses it", code: `
			ff d0                      # 0
			75 05                      # 2 jne 9
			c3                         # 4
			e8 f6 80 00 00             # 5 call __stack_chk_fail: not reached
			c3                         # 10`,
			err: ErrUndecodable},
		{claim: "a landing pad that rejoins before the site is counted", code: `
			ff d0                      # 0
			75 03                      # 2 jne 7: site
			c3                         # 4
			eb f9                      # 5 landing pad: jmp 0+...
			c3                         # 7`,
			offsets: []uint64{2}, known: true, cost: CostEmulated},
		{claim: "a landing pad with a return of its own has no cheap site", code: `
			ff d0                      # 0
			75 00                      # 2 jne 4
			c3                         # 4
			31 c0                      # 5 landing pad
			c3                         # 7`,
			err: ErrNoExitSite},
		{claim: "padding is not a landing pad", code: `
			ff d0                      # 0
			75 04                      # 2 jne 8
			c3                         # 4
			0f 1f 00                   # 5 nopl
			c3                         # 8`,
			offsets: []uint64{2}, known: true, cost: CostEmulated},
		{claim: "a realigned frame hides the displacement", code: `
			55                         # 0 push %rbp
			48 89 e5                   # 1 mov %rsp,%rbp
			48 83 e4 e0                # 4 and $-32,%rsp
			ff d0                      # 8
			75 00                      # 10 jne 12
			c9                         # 12 leave
			c3                         # 13`,
			offsets: []uint64{10}, cost: CostEmulated},
		{claim: "after leave the displacement is known again", code: `
			55                         # 0
			48 89 e5                   # 1
			48 83 e4 e0                # 4
			ff d0                      # 8
			c9                         # 10
			75 00                      # 11
			c3                         # 13`,
			offsets: []uint64{11}, known: true, cost: CostEmulated},
		{claim: "arm64: the return is simulated", arch: ARM64, code: `
			fd7bbfa9                   # stp x29,x30,[sp,#-16]!
			00003fd6                   # blr x0
			fd7bc1a8                   # ldp x29,x30,[sp],#16
			c0035fd6                   # ret`,
			offsets: []uint64{12}, known: true, cost: CostEmulated},
		{claim: "arm64: an indirect tail call is simulated, so a site itself", arch: ARM64, code: `
			210040f9                   # ldr x1,[x1]
			20001fd6                   # br x1`,
			offsets: []uint64{4}, known: true, cost: CostEmulated, tail: true},
		{claim: "arm64: an authenticated return is refused", arch: ARM64, code: `
			3f2303d5                   # paciasp
			fd7bbfa9
			00003fd6
			fd7bc1a8
			ff0b5fd6                   # retaa`,
			stepped: true, err: ErrNoExitSite},
	} {
		t.Run(c.claim, func(t *testing.T) {
			exits, err := PlanExits(testFunction(t, c.arch, c.code), c.stepped)
			if !errors.Is(err, c.err) || (err != nil) != (c.err != nil) {
				t.Fatalf("%+v, error %v, want %v", exits, err, c.err)
			}
			if err != nil {
				return
			}
			var at []uint64
			for _, e := range exits {
				at = append(at, e.Offset)
			}
			if !slices.Equal(at, c.offsets) {
				t.Fatalf("%+v, want sites at %d", exits, c.offsets)
			}
			e := exits[0]
			if e.Displacement != c.down || e.DisplacementKnown != c.known || e.Cost != c.cost || e.TailCall != c.tail || e.CallsAfter != c.calls {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestColdPartThatRejoinsIsFollowed(t *testing.T) {
	f := testFunction(t, AMD64, `
		74 05          # 0 je 7
		e9 f9 0f 00 00 # 2 jmp 0x2000, cold
		ff d0          # 7
		75 00          # 9
		c3             # 11`)
	cold := Fragment{0x2000, code(t, "e8 fb 6f 00 00 e9 fd ef ff ff")} // call 0x9000; jmp 0x1007
	if _, err := PlanExits(f, false); !errors.Is(err, ErrLeavesFunction) {
		t.Errorf("without the cold part: %v, want %v", err, ErrLeavesFunction)
	}
	f.Part = func(a uint64) (Fragment, bool) { return cold, a == 0x2000 }
	exits, err := PlanExits(f, false)
	if err != nil || len(exits) != 1 || exits[0].Offset != 9 {
		t.Errorf("%+v, %v; want one site at 9", exits, err)
	}
	cold.Code = code(t, "e8 fb 6f 00 00 e9 01 f0 ff ff") // behind the site
	exits, err = PlanExits(f, false)
	if err != nil || len(exits) != 2 || exits[0].Offset != 2 || exits[1].Offset != 9 {
		t.Errorf("a cold part that rejoins behind the site: %+v, %v; want the jump to it as a second site", exits, err)
	}
}

func TestJumpTableIsFollowed(t *testing.T) {
	f := testFunction(t, AMD64, `
		48 8d 15 f9 2f 00 00 # 0 lea 0x4000(%rip),%rdx
		48 63 04 82          # 7 movslq (%rdx,%rax,4),%rax
		48 01 d0             # 11 add %rdx,%rax
		3e ff e0             # 14 notrack jmp *%rax
		ff d0                # 17 case 0
		75 03                # 19 jne 24
		c3                   # 21
		ff d1                # 22 case 1
		c3                   # 24`)
	if _, err := PlanExits(f, false); !errors.Is(err, ErrIndirectJump) {
		t.Errorf("without the table: %v, want %v", err, ErrIndirectJump)
	}
	table := map[uint64]int32{0x4000: 17 - 0x3000, 0x4004: 17 - 0x3000}
	f.Read = func(a uint64, b []byte) bool {
		v, ok := table[a]
		b[0], b[1], b[2], b[3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
		return ok
	}
	if exits, err := PlanExits(f, false); err == nil {
		t.Errorf("an orphan case that returns on its own: %+v, want an error", exits)
	}
	if exits, err := PlanExits(f, true); err != nil || len(exits) != 2 {
		t.Errorf("%+v, %v; want two sites", exits, err)
	}
}

func TestThrowAfterTheSiteIntoAPadThatReturnsIsRefused(t *testing.T) {
	f := testFunction(t, AMD64, `
		ff d0                      # 0
		75 05                      # 2 jne 9
		e8 f7 7f 00 00             # 4 call 0x9000, may throw
		c3                         # 9
		eb f6                      # 10 landing pad: back to 2`)
	if exits, err := PlanExits(f, false); err == nil {
		t.Errorf("%+v, want an error: the catch passes the site again", exits)
	}
	f.Leaf = func(uint64) bool { return true }
	if _, err := PlanExits(f, false); err != nil {
		t.Errorf("where the call cannot throw: %v", err)
	}
}

// TestCheckerFindsWrongPlans feeds the checker plans that the selector would
// never make.
func TestCheckerFindsWrongPlans(t *testing.T) {
	f := testFunction(t, AMD64, `
		75 02                      # 0 jne 4
		ff d0                      # 2
		75 00                      # 4 jne 6
		ff c8                      # 6 dec %eax
		75 fc                      # 8 jne 6
		c3                         # 10`)
	p, err := newProgram(&f, everything)
	if err != nil {
		t.Fatal(err)
	}
	defer p.release()
	if err := p.resolve(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		claim string
		sites []uint64
		ok    bool
	}{
		{"none", nil, false},
		{"one that dominates the return", []uint64{4}, true},
		{"two in a row", []uint64{0, 4}, false},
		{"one on a branch only", []uint64{2}, false},
		{"one in a loop", []uint64{8}, false},
		{"the return", []uint64{10}, true},
	} {
		var sites []int32
		for _, o := range c.sites {
			sites = append(sites, p.find(testOrigin+o))
		}
		if err := p.check(sites); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.claim, err)
		}
	}
}
