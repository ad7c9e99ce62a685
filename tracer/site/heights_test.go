package site

import (
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
)

// Compilers describe the frames of their functions; what is inferred from the
// instructions alone must say the same.
func TestHeightsAreThoseThatTheCompilerDescribed(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("heights are inferred from x86-64's instructions, of this machine's libraries")
	}
	for _, pattern := range []string{"/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/bin/python3.[0-9]*[0-9]", "/usr/lib/x86_64-linux-gnu/libtorch_python.so.1.13.0"} {
		matches, _ := filepath.Glob(pattern)
		for _, path := range matches {
			t.Run(filepath.Base(path), func(t *testing.T) { compareHeights(t, path) })
		}
	}
}

func compareHeights(t *testing.T, path string) {
	e, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	table, err := unwind.Compile(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	functions, believed, rows, wrong := 0, 0, 0, 0
	for i, start := range e.FunctionStarts() {
		if testing.Short() && i%10 != 0 {
			continue
		}
		_, end, ok := e.Extent(start)
		if !ok || start%functionAlignment != 0 || table.Lookup(start).Kind != unwind.Offset || table.Lookup(start).CFA != 8 {
			continue
		}
		functions++
		found := Heights(e.CodeAt(start, end-start), start)
		if len(found) > 0 {
			believed++
		}
		for _, h := range found {
			if !h.Known || h.Address >= end {
				continue
			}
			rows++
			if !sameFrame(h, table.Lookup(h.Address)) {
				if wrong++; wrong < 6 {
					t.Logf("%#x in the function at %#x: %+v, described %+v", h.Address, start, h, table.Lookup(h.Address))
				}
			}
		}
	}
	t.Logf("%d of %d functions inferred, %d rows, %d wrong", believed, functions, rows, wrong)
	if believed*2 < functions {
		t.Errorf("only %d of %d functions were inferred", believed, functions)
	}
	if wrong*2000 > rows {
		t.Errorf("%d of %d rows differ from what the compiler described", wrong, rows)
	}
}

// sameFrame compares where the frame is; by which register may differ.
func sameFrame(h Height, r unwind.Rule) bool {
	if r.Kind != unwind.Offset || (r.Register == unwind.FP) != h.ByFP {
		return r.Kind == unwind.Offset && r.Register <= unwind.FP
	}
	return r.CFA == h.Offset && (r.FramePointer != unwind.AtCFA || h.FP == FPInRegister || h.FP == FPSaved && h.SavedFP == r.FPOffset)
}

// As in MKL's matrix products: the old stack pointer goes into the new frame, and
// %rbp is then used for other things.
func TestRealignedFrameIsFollowedThroughMemory(t *testing.T) {
	code := []byte{
		0x48, 0x83, 0xec, 0x40, // 0 sub $0x40, %rsp
		0x48, 0x89, 0x6c, 0x24, 0x08, // 4 mov %rbp, 8(%rsp)
		0x48, 0x89, 0xe5, // 9 mov %rsp, %rbp
		0x48, 0x29, 0xc4, // c sub %rax, %rsp
		0x48, 0x81, 0xe4, 0x00, 0xf0, 0xff, 0xff, // f and $-4096, %rsp
		0x48, 0x89, 0x6c, 0x24, 0x78, // 16 mov %rbp, 0x78(%rsp)
		0x31, 0xed, // 1b xor %ebp, %ebp
		0x48, 0x8b, 0x64, 0x24, 0x78, // 1d mov 0x78(%rsp), %rsp
		0x48, 0x8b, 0x6c, 0x24, 0x08, // 22 mov 8(%rsp), %rbp
		0x48, 0x83, 0xc4, 0x40, // 27 add $0x40, %rsp
		0xc3, // 2b ret
	}
	want := []Height{
		{Address: 0x1000, Known: true, Offset: 8},
		{Address: 0x1004, Known: true, Offset: 72},
		{Address: 0x100c, Known: true, Offset: 72, FP: FPSaved, SavedFP: -64},
		{Address: 0x100f, Known: true, ByFP: true, Offset: 72, FP: FPSaved, SavedFP: -64},
		{Address: 0x101b, Known: true, Slot: 0x78, Offset: 72, FP: FPSaved, SavedFP: -64},
		{Address: 0x1022, Known: true, Offset: 72, FP: FPSaved, SavedFP: -64},
		{Address: 0x102b, Known: true, Offset: 8, FP: FPSaved, SavedFP: -64},
		{Address: 0x102c},
	}
	if got := Heights(code, 0x1000); !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// As in oneDNN's generated kernels, where they compute an activation function.
func TestRealignedFrameIsFollowedThroughAnyRegister(t *testing.T) {
	code := []byte{
		0x41, 0x57, // 0 push %r15
		0x49, 0x89, 0xe7, // 2 mov %rsp, %r15
		0x48, 0x83, 0xec, 0x08, // 5 sub $8, %rsp
		0x48, 0x83, 0xe4, 0xc0, // 9 and $-64, %rsp
		0x4c, 0x89, 0x3c, 0x24, // d mov %r15, (%rsp)
		0x48, 0x81, 0xec, 0x80, 0x01, 0x00, 0x00, // 11 sub $0x180, %rsp
		0x49, 0x89, 0xe7, // 18 mov %rsp, %r15
		0x49, 0x81, 0xc7, 0x80, 0x01, 0x00, 0x00, // 1b add $0x180, %r15
		0x49, 0x8b, 0x27, // 22 mov (%r15), %rsp
		0x41, 0x5f, // 25 pop %r15
		0xc3, // 27 ret
	}
	want := []Height{
		{Address: 0x1000, Known: true, Offset: 8},
		{Address: 0x1002, Known: true, Offset: 16},
		{Address: 0x1009, Known: true, Offset: 24},
		{Address: 0x100d}, // through a register that walks do not follow
		{Address: 0x1018, Known: true, Slot: 0x180, Offset: 16},
		{Address: 0x1025, Known: true, Offset: 16},
		{Address: 0x1027, Known: true, Offset: 8},
		{Address: 0x1028},
	}
	if got := Heights(code, 0x1000); !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	lost := slices.Clone(code)
	lost[0x1e] = 0x78 // add $0x178, %r15: not where the old stack pointer is
	if got := Heights(lost, 0x1000); len(got) != 0 {
		t.Errorf("a stack pointer that was read from elsewhere is believed: %+v", got)
	}
}

func TestPieceOfAFunctionIsNotBelieved(t *testing.T) {
	for name, code := range map[string][]byte{
		"epilogue":                 {0x48, 0x83, 0xc4, 0x40, 0xc3},             // add $0x40, %rsp; ret
		"pop":                      {0x5b, 0xc3},                               // pop %rbx; ret
		"unbalanced":               {0x53, 0xc3},                               // push %rbx; ret
		"one way out of two":       {0x74, 0x01, 0x53, 0xc3},                   // je +1; push %rbx; ret
		"no return":                {0x48, 0x83, 0xec, 0x08, 0xeb, 0xfe},       // sub $8, %rsp; jmp .
		"runs off the end":         {0x48, 0x83, 0xec, 0x08},                   // sub $8, %rsp
		"an opcode that is not":    {0x06, 0xc3},                               //
		"falls into what is known": {0x53, 0xeb, 0x01, 0xcc, 0x58, 0x58, 0xc3}, // push; jmp; …; pop; pop; ret
	} {
		if got := Heights(code, 0x1000); len(got) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func FuzzHeights(f *testing.F) {
	f.Add([]byte{0x53, 0x48, 0x83, 0xec, 0x40, 0x74, 0x02, 0x31, 0xed, 0x48, 0x83, 0xc4, 0x40, 0x5b, 0xc3})
	f.Fuzz(func(t *testing.T, code []byte) {
		last := uint64(0)
		for _, h := range Heights(code, 0x1000) {
			if h.Address < last || h.Address < 0x1000 || h.Address > 0x1000+uint64(len(code)) {
				t.Fatalf("%#x after %#x in %d bytes", h.Address, last, len(code))
			}
			last = h.Address
		}
	})
}
