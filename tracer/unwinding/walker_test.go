package unwinding

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// walker is the walk of bpf/unwind.h in user space (testdata/native/walk.c):
// the same C, over memory that tests made up, recorded or took from a stopped
// process. It needs no root.
type walker struct {
	t      testing.TB
	in     *bufio.Writer
	out    io.Reader
	shards []shard

	memory  memory // as say was told
	machine elf.Machine
	outside *Unwinder // whose walk from outside is to find the same; may be nil
}

func newWalker(t testing.TB, machine string) *walker {
	t.Helper()
	command := exec.Command(filepath.Join(buildNative(t), "walk-"+machine))
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("the walk in user space: %v", err)
		}
	})
	return &walker{t: t, in: bufio.NewWriterSize(in, 1<<20), out: bufio.NewReader(out)}
}

// say sends one message: a letter, a length, and the values.
func (w *walker) say(letter byte, values ...any) {
	var body bytes.Buffer
	for _, v := range values {
		if b, ok := v.([]byte); ok {
			body.Write(b)
		} else if err := binary.Write(&body, binary.LittleEndian, v); err != nil {
			w.t.Fatal(err)
		}
	}
	w.memory.say(letter, body.Bytes())
	w.in.WriteByte(letter)
	binary.Write(w.in, binary.LittleEndian, uint32(body.Len()))
	w.in.Write(body.Bytes())
}

func (w *walker) putRule(number uint16, rule *bpf.NativeWalkUnwindRule) error {
	w.say('r', uint32(number), rule)
	return nil
}

func (w *walker) putFile(number uint32, file *bpf.NativeWalkUnwindFile) error {
	w.say('f', number, file)
	return nil
}

func (w *walker) putProcess(_ int, process *bpf.NativeWalkUnwindProcess) error {
	w.say('p', process)
	return nil
}

func (w *walker) deleteProcess(int) error { return nil }
func (w *walker) settle() error           { return nil }
func (w *walker) putInode(bpf.NativeWalkUnwindInode, *bpf.NativeWalkUnwindInodeFile) error {
	return nil
}
func (w *walker) deleteInode(bpf.NativeWalkUnwindInode) error { return nil }
func (w *walker) forgetVMAs() error                           { return nil }
func (w *walker) takeWanted() ([]int, error)                  { return nil, nil }

func (w *walker) newShard(number int) (shard, error) {
	s := shard{make([]byte, shardLeaves*unwind.LeafBytes), func() {}}
	w.shards = append(w.shards, s)
	return s, nil
}

// send hands the leaves over: the walker has no memory in common with us.
func (w *walker) send() {
	for i, s := range w.shards {
		w.say('l', uint32(i*shardLeaves), s.memory)
	}
}

func (w *walker) walk(start bpf.NativeWalkNativeTaken) nativeStack {
	w.t.Helper()
	start.Start.Tgid = 1
	w.say('w', start.Start)
	w.in.Flush()
	var stack nativeStack
	if err := binary.Read(w.out, binary.LittleEndian, &stack); err != nil {
		w.t.Fatalf("no answer from the walk in user space: %v", err)
	}
	w.compare(bpf.PythonWalkWalkStart(start.Start), &stack)
	return stack
}

// tape is a made-up process: one file whose functions have the rules of a test,
// each 0x100 bytes long from codeStart on, and a stack.
type tape struct {
	*walker
	unwinder *Unwinder
	stack    []byte
	text     map[uint64][]byte // instructions, by where they end
	file     *file
}

const (
	codeStart  = 0x7f0000400000
	stackStart = 0x7ffd00000000
)

func newTape(t *testing.T, machine string, rules ...unwind.Rule) *tape {
	w := newWalker(t, machine)
	u := newUnwinder(w, Options{})
	t.Cleanup(u.Close)
	s := &tape{walker: w, unwinder: u}
	w.outside, w.machine = u, elf.MachineX86_64
	if machine == "arm64" {
		w.machine = elf.MachineARM64
	}
	s.file = &file{number: firstFile, mappers: map[int]bool{}}
	s.publish(machine, rules...)
	p := &processTable{mappings: []mapping{
		{start: codeStart, end: codeStart + 0x10000, file: firstFile, address: 0x10000},
		{start: codeStart + 0x20000, end: codeStart + 0x21000, file: anonymous},
		{start: codeStart + 0x30000, end: codeStart + 0x31000, file: firstFile + 1}, // no table yet
	}}
	if err := w.putProcess(1, p.entry()); err != nil {
		t.Fatal(err)
	}
	p.process, p.files = &process.Process{PID: 1}, map[*file]bool{s.file: true}
	u.processes[1] = p
	return s
}

// publish gives the file other rules.
func (s *tape) publish(machine string, rules ...unwind.Rule) {
	s.t.Helper()
	of := elf.MachineX86_64
	shift := uint(0)
	if machine == "arm64" {
		of, shift = elf.MachineARM64, 2
	}
	leaf := make([]byte, 2*unwind.LeafBytes)
	binary.LittleEndian.PutUint32(leaf, 1)
	binary.LittleEndian.PutUint16(leaf[6:], uint16(len(rules)+1))
	for i := range len(rules) + 1 {
		binary.LittleEndian.PutUint16(leaf[unwind.LeafBytes+i*4:], uint16((i+1)<<8>>shift)) // 256 before the page is 0
		binary.LittleEndian.PutUint16(leaf[unwind.LeafBytes+i*4+2:], uint16((i+1)%(len(rules)+1))|1<<15)
	}
	table := &unwind.Table{Machine: of, Base: 0x10000, PageBits: 15, Pages: 1, Rows: len(rules) + 1, Rules: append([]unwind.Rule{{}},
		rules...), Leaves: leaf}
	if err := s.unwinder.room.publish(s.file, table, unwind.Digest{}); err != nil {
		s.t.Fatal(err)
	}
	s.send()
}

// code is an address inside the i-th function.
func code(i int) uint64 { return codeStart + uint64(i)*0x100 + 0x10 }

// put writes words to the stack from an offset on.
func (s *tape) put(at int, words ...uint64) {
	if need := at + 8*len(words); need > len(s.stack) {
		s.stack = append(s.stack, make([]byte, need-len(s.stack))...)
	}
	for i, word := range words {
		binary.LittleEndian.PutUint64(s.stack[at+8*i:], word)
	}
}

// run walks from the registers, with the stack pointer at the stack's start.
func (s *tape) run(pc, fp uint64, faults ...uint64) nativeStack {
	s.say('c')
	s.say('m', uint64(stackStart), s.stack)
	for end, text := range s.text {
		s.say('m', end-uint64(len(text)), text)
	}
	for _, f := range faults {
		s.say('x', f)
	}
	return s.from(pc, fp)
}

func (s *tape) from(pc, fp uint64) nativeStack {
	var start bpf.NativeWalkNativeTaken
	start.Start.Pc, start.Start.Sp, start.Start.Fp = pc, stackStart, fp
	return s.walk(start)
}

func (s *nativeStack) check(t *testing.T, outcome string, pcs ...uint64) {
	t.Helper()
	if got := Outcome(s.Outcome).String(); got != outcome || !slices.Equal(s.pcs(), pcs) {
		t.Errorf("%s after %#x, want %s after %#x", got, s.pcs(), outcome, pcs)
	}
}

var (
	pushed  = unwind.Rule{Kind: unwind.Offset, CFA: 16}
	saving  = unwind.Rule{Kind: unwind.Offset, CFA: 16, FramePointer: unwind.AtCFA, FPOffset: -16}
	byFrame = unwind.Rule{Kind: unwind.Offset, Register: unwind.FP, CFA: 16, FramePointer: unwind.AtCFA, FPOffset: -16}
	ending  = unwind.Rule{Kind: unwind.Offset, CFA: 8, ReturnAddress: unwind.End}
)

func TestWalkEndsWhereTheReturnAddressIsUndefined(t *testing.T) {
	s := newTape(t, "x86", pushed, ending)
	s.put(0, 0, code(1), 0)
	stack := s.run(code(0), 0)
	stack.check(t, "native_end", code(0), code(1))
	if stack.Frame[0].CFA != 16 || stack.Frame[1].CFA != 24 {
		t.Errorf("frame addresses %#x, %#x, want 0x10, 0x18", stack.Frame[0].CFA, stack.Frame[1].CFA)
	}
}

func TestReturnAddressAtTheEndOfAFunctionBelongsToIt(t *testing.T) {
	s := newTape(t, "x86", pushed, pushed, ending)
	after := uint64(codeStart + 0x200) // the first byte after function 1, which ends in a call
	s.put(0, 0, after, 0, code(2), 0)
	stack := s.run(code(0), 0)
	stack.check(t, "native_end", code(0), after, code(2))
}

func TestFramePointerIsCarriedThroughFramesThatSaveIt(t *testing.T) {
	s := newTape(t, "x86", saving, byFrame, ending)
	s.put(0, stackStart+0x40, code(1))
	s.put(0x40, 0, code(2), 0)
	stack := s.run(code(0), 12345)
	stack.check(t, "native_end", code(0), code(1), code(2))
}

func TestRealignedFrameIsFoundThroughMemory(t *testing.T) {
	realigned := unwind.Rule{Kind: unwind.Deref, Register: unwind.FP, Aux: -8, FramePointer: unwind.AtFP}
	s := newTape(t, "x86", pushed, realigned, byFrame, ending)
	s.put(0, 0, code(1))
	s.put(0x38, stackStart+0x80) // *(fp - 8): the frame's address
	s.put(0x40, stackStart+0xc0) // *fp: the caller's frame pointer
	s.put(0x78, code(2))         // at the frame's address - 8
	s.put(0xc0, 0, code(3))
	stack := s.run(code(0), stackStart+0x40)
	stack.check(t, "native_end", code(0), code(1), code(2), code(3))
}

func TestLeafMayFindItsFrameThroughR10ButNoCaller(t *testing.T) {
	drap := unwind.Rule{Kind: unwind.Offset, Register: unwind.R10}
	s := newTape(t, "x86", drap, drap, ending)
	s.put(0x38, code(2), 0, 0)
	s.say('c')
	s.say('m', uint64(stackStart), s.stack)
	var start bpf.NativeWalkNativeTaken
	start.Start.Pc, start.Start.Sp, start.Start.R10 = code(0), stackStart, stackStart+0x40
	stack := s.walk(start)
	stack.check(t, "native_end", code(0), code(2))
	s.put(0x38, code(1))
	s.say('c')
	s.say('m', uint64(stackStart), s.stack)
	stack = s.walk(start)
	stack.check(t, "native_register", code(0), code(1))
}

func TestLinkageTableHasPushedAWordAfterItsFirstInstructions(t *testing.T) {
	plt := unwind.Rule{Kind: unwind.PLT, Aux: 11}
	s := newTape(t, "x86", plt, ending)
	s.put(0, code(1), 0)
	stack := s.run(codeStart+0x20+6, 0)
	stack.check(t, "native_end", codeStart+0x20+6, code(1))
	s.put(0, 7, code(1))
	stack = s.run(codeStart+0x20+11, 0)
	stack.check(t, "native_end", codeStart+0x20+11, code(1))
}

func TestInterruptedFrameIsNoReturnAddress(t *testing.T) {
	s := newTape(t, "x86", pushed, unwind.Rule{Kind: unwind.Signal}, byFrame, ending)
	interrupted := uint64(codeStart + 0x200) // the first instruction of function 2
	s.put(0, 0, code(1))
	registers := 0x10 + 40 // the ucontext begins at the frame's address
	s.put(registers+80, stackStart+0x200)
	s.put(registers+120, stackStart+0x1f0)
	s.put(registers+128, interrupted)
	s.put(0x200, 0, code(3), 0)
	stack := s.run(code(0), 0)
	stack.check(t, "native_end", code(0), code(1), interrupted, code(3))
	if stack.Frame[2].Flags != uint32(bpf.NativeWalkNativeFlagNATIVE_SIGNAL) {
		t.Errorf("the interrupted frame's flags are %d", stack.Frame[2].Flags)
	}
}

func TestEveryReadThatFailsHasItsOutcome(t *testing.T) {
	realigned := unwind.Rule{Kind: unwind.Deref, Register: unwind.FP, Aux: -8}
	s := newTape(t, "x86", saving, realigned, unwind.Rule{Kind: unwind.Signal}, ending)
	s.put(0, stackStart+0x40, code(1))
	s.put(0x38, stackStart+0x80)
	s.put(0x78, code(2))
	s.put(0x80, make([]uint64, 24)...)
	s.put(0x80+40+120, stackStart+0x200, code(3))
	whole := s.run(code(0), 0)
	whole.check(t, "native_end", code(0), code(1), code(2), code(3))
	for i, fault := range []uint64{0x8, 0x38, 0x78, 0x80 + 40} {
		stack := s.run(code(0), 0, stackStart+fault)
		stack.check(t, "native_bad_read", whole.pcs()[:[]int{1, 2, 2, 3}[i]]...)
	}
}

func TestFramesThatDoNotRiseEndTheWalk(t *testing.T) {
	s := newTape(t, "x86", pushed, byFrame)
	s.put(0, 0, code(1))
	stack := s.run(code(0), stackStart-64)
	stack.check(t, "native_loop", code(0), code(1))
	stack = s.run(code(1), stackStart-16)
	stack.check(t, "native_loop", code(1))
}

func TestAddressesThatNothingDescribesEndTheWalk(t *testing.T) {
	s := newTape(t, "x86", pushed, unwind.Rule{Kind: unwind.Expression}, unwind.Rule{Kind: unwind.Register})
	for _, c := range []struct {
		outcome string
		pc      uint64
		kept    bool
	}{
		{"native_no_mapping", 0x1234, false},
		{"native_no_mapping", math.MaxUint64 - 4095, false},
		{"native_no_mapping", codeStart + 0x18000, false}, // between two mappings
		{"native_end", 0, false},
		{"native_no_row", codeStart + 0x5000, true},
		{"native_expression", code(1), true},
		{"native_register", code(2), true},
		{"native_no_table", codeStart + 0x30010, true},
		{"native_anonymous_code", codeStart + 0x20010, true},
	} {
		s.put(0, 0, c.pc)
		stack := s.run(code(0), stackStart+1)
		want := []uint64{code(0)}
		if c.kept {
			want = append(want, c.pc)
		}
		stack.check(t, c.outcome, want...)
	}
}

func TestGeneratedCodeIsLeftByFramePointer(t *testing.T) {
	s := newTape(t, "x86", pushed, ending)
	jit := uint64(codeStart + 0x20010)
	s.put(0, 0, jit)
	s.put(0x40, 77, code(1), 0)
	stack := s.run(code(0), stackStart+0x40)
	stack.check(t, "native_end", code(0), jit, code(1))
	if stack.Frame[2].Flags != uint32(bpf.NativeWalkNativeFlagNATIVE_FRAME_POINTER) {
		t.Errorf("flags %d on the frame that the frame pointer led to", stack.Frame[2].Flags)
	}
}

// Python calls pass such code with -X perf, which has no frame pointer.
func TestPythonsTrampolineIsLeftByItsInstructions(t *testing.T) {
	s := newTape(t, "x86", pushed, ending)
	jit := uint64(codeStart + 0x20010)
	s.put(0, 0, jit, 0, code(1), 0)
	for name, c := range map[string]struct {
		code []byte
		want string
	}{
		"add $8, %rsp; ret":           {[]byte{0x48, 0x83, 0xc4, 0x08, 0xc3, 0, 0, 0}, "native_end"},
		"add $16, %rsp; ret":          {[]byte{0x48, 0x83, 0xc4, 0x10, 0xc3, 0, 0, 0}, "native_anonymous_code"},
		"add $8, %rsp; something":     {[]byte{0x48, 0x83, 0xc4, 0x08, 0x90, 0, 0, 0}, "native_anonymous_code"},
		"code that is not there":      {nil, "native_anonymous_code"},
		"the end of the mapping cuts": {[]byte{0x48, 0x83, 0xc4, 0x08}, "native_anonymous_code"},
	} {
		s.text = map[uint64][]byte{jit + uint64(len(c.code)): c.code}
		stack := s.run(code(0), stackStart+1)
		want := []uint64{code(0), jit}
		if c.want == "native_end" {
			want = append(want, code(1))
		}
		if got := Outcome(stack.Outcome).String(); got != c.want || !slices.Equal(stack.pcs(), want) {
			t.Errorf("%s: %s after %#x, want %s after %#x", name, got, stack.pcs(), c.want, want)
		}
	}
	// Where the walk begins in it, its instructions say nothing of the stack.
	s.text = map[uint64][]byte{jit + 8: {0x48, 0x83, 0xc4, 0x08, 0xc3, 0, 0, 0}}
	stack := s.run(jit, stackStart+1)
	stack.check(t, "native_anonymous_code", jit)
}

func TestLongStackIsCutAtTheLimit(t *testing.T) {
	s := newTape(t, "x86", pushed)
	for i := range 300 {
		s.put(i*16, 0, code(0))
	}
	stack := s.run(code(0), 0)
	if Outcome(stack.Outcome).String() != "native_max_frames" || stack.Count != 128 {
		t.Errorf("%v after %d frames", Outcome(stack.Outcome), stack.Count)
	}
}

func TestReturnProbesAreSeenThrough(t *testing.T) {
	const page = uint64(0x7fffffff0000)
	s := newTape(t, "x86", pushed, pushed, pushed, ending)
	s.put(0, 0, page, 0, page, 0, code(3), 0)
	run := func(stepped uint64, pc uint64, pending ...uint64) nativeStack {
		s.say('c')
		s.say('m', uint64(stackStart), s.stack)
		s.say('u', page, stepped, pending)
		return s.from(pc, 0)
	}
	// The first lies below the stack: longjmp left it. Two are pending on one
	// return, since a probed function jumped into another.
	stack := run(0, code(0), stackStart-64, code(9), stackStart+8, code(1), stackStart+8, code(1), stackStart+24, code(2))
	stack.check(t, "native_end", code(0), code(1), code(2), code(3))
	for i, want := range []uint32{0, 4, 4, 0} {
		if stack.Frame[i].Flags != want {
			t.Errorf("frame %d has flags %d, want %d", i, stack.Frame[i].Flags, want)
		}
	}
	stack = run(0, code(0), stackStart+8, code(1))
	stack.check(t, "native_return_probe", code(0), code(1))
	stack = run(0, code(0), stackStart+24, code(1))
	stack.check(t, "native_return_probe", code(0))
	// An instruction that is single-stepped in that page.
	stack = run(code(2), page+128, stackStart+8, code(1), stackStart+24, code(2))
	stack.check(t, "native_end", code(2), code(1), code(2), code(3))
}

func TestArm64ReturnsThroughTheLinkRegisterOnlyInTheLeaf(t *testing.T) {
	leaf := unwind.Rule{Kind: unwind.Offset, ReturnAddress: unwind.Link}
	framed := unwind.Rule{Kind: unwind.Offset, CFA: 32, FramePointer: unwind.AtCFA, FPOffset: -32, Aux: -24}
	s := newTape(t, "arm64", leaf, framed, leaf, ending)
	signed := func(pc uint64) uint64 { return pc | 0x5a<<48 } // by pointer authentication
	s.put(0, 0, signed(code(3)), 0, 0)
	s.say('c')
	s.say('m', uint64(stackStart), s.stack)
	var start bpf.NativeWalkNativeTaken
	start.Start.Pc, start.Start.Sp, start.Start.Lr = code(0), stackStart, signed(code(1))
	stack := s.walk(start)
	stack.check(t, "native_end", code(0), code(1), code(3))
	start.Start.Lr = code(2)
	stack = s.walk(start)
	stack.check(t, "native_register", code(0), code(2))
}

func TestTablesThatNobodyMapsMakeRoom(t *testing.T) {
	w := newWalker(t, "x86")
	u := newUnwinder(w, Options{MemoryBytes: 1}) // one shard
	t.Cleanup(u.Close)
	table := &unwind.Table{Machine: elf.MachineX86_64, PageBits: 8, Pages: 1, Rules: []unwind.Rule{{}},
		Leaves: make([]byte, 200*unwind.LeafBytes)}
	add := func(name string, mapped bool) (*file, error) {
		number, err := u.room.newNumber(nil)
		if err != nil {
			t.Fatal(err)
		}
		f := &file{number: number, mappers: map[int]bool{}}
		if mapped {
			f.mappers[1] = true
		}
		u.files.byOrigin[name] = f
		return f, u.room.publish(f, table, unwind.Digest{})
	}
	mapped, err := add("mapped", true)
	if err != nil {
		t.Fatal(err)
	}
	unused, err := add("unused", false)
	if err != nil {
		t.Fatal(err)
	}
	first := unused.image.first
	if _, err := add("third", true); err != nil {
		t.Errorf("no room beside a table that no process maps: %v", err)
	}
	if u.files.byOrigin["unused"] != nil || u.files.byOrigin["mapped"] != mapped || u.files.byOrigin["third"].image.first != first {
		t.Errorf("the wrong table went: %v", u.files.byOrigin)
	}
	if _, err := add("fourth", true); !errors.Is(err, ErrNoRoom) {
		t.Errorf("%v, want ErrNoRoom", err)
	}
	if allocated, used := u.Memory(); allocated != 512*4096 || used != 400*4096 {
		t.Errorf("%d bytes allocated, %d used", allocated, used)
	}
}

func TestInferredFramesAreMarked(t *testing.T) {
	inferred := unwind.Rule{Kind: unwind.Inferred, CFA: 16}
	through := unwind.Rule{Kind: unwind.Inferred, CFA: 72, Aux: 0x78}
	s := newTape(t, "x86", inferred, through, ending)
	s.put(0, 0, code(1))
	s.put(0x10+0x78, stackStart+0x200)
	s.put(0x200+72-8, code(2), 0)
	// Calls, of the code that is returned to: relative, and through memory.
	s.text = map[uint64][]byte{code(1): {0x90, 0x90, 0xe8, 1, 2, 3, 4}, code(2): {0x90, 0xff, 0x90, 0x78, 0x56, 0x34, 0x12}}
	stack := s.run(code(0), 0)
	stack.check(t, "native_end", code(0), code(1), code(2))
	for i, want := range []uint32{0, 8, 8} {
		if stack.Frame[i].Flags != want {
			t.Errorf("frame %d has flags %d, want %d", i, stack.Frame[i].Flags, want)
		}
	}
}

func TestInferredFrameIsBelievedBehindACallOnly(t *testing.T) {
	inferred := unwind.Rule{Kind: unwind.Inferred, CFA: 16}
	s := newTape(t, "x86", inferred, ending)
	s.put(0, 0, code(1), 0)
	for name, c := range map[string]struct {
		before []byte
		want   string
	}{
		"call rel32":                {[]byte{0x90, 0x90, 0xe8, 1, 2, 3, 4}, "native_end"},
		"call rel32 with a probe":   {[]byte{0x90, 0x90, 0xcc, 1, 2, 3, 4}, "native_end"},
		"call *%rax":                {[]byte{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0}, "native_end"},
		"call *%r12":                {[]byte{0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd4}, "native_end"},
		"call *8(%rax)":             {[]byte{0x90, 0x90, 0x90, 0x90, 0xff, 0x50, 0x08}, "native_end"},
		"call *8(%rsp)":             {[]byte{0x90, 0x90, 0x90, 0xff, 0x54, 0x24, 0x08}, "native_end"},
		"call *0x1000(%rip)":        {[]byte{0x90, 0xff, 0x15, 0x00, 0x10, 0x00, 0x00}, "native_end"},
		"call *0x1000(%rax,%rbx,8)": {[]byte{0xff, 0x94, 0xd8, 0x00, 0x10, 0x00, 0x00}, "native_end"},
		"jmp *%rax":                 {[]byte{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0}, "native_not_a_call"},
		"no call":                   {[]byte{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, "native_not_a_call"},
		"code that is not there":    {nil, "native_not_a_call"},
	} {
		s.text = map[uint64][]byte{code(1): c.before}
		stack := s.run(code(0), 0)
		if got := Outcome(stack.Outcome).String(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// The walk caches which rule an address has, but not for another table.
func TestAnotherTableForgetsWhatWasFoundInTheOneBefore(t *testing.T) {
	s := newTape(t, "x86", pushed, ending)
	s.put(0, 0, code(1), 0, code(1))
	for range 2 {
		stack := s.run(code(0), 0)
		stack.check(t, "native_end", code(0), code(1))
		if stack.Frame[0].CFA != 16 {
			t.Errorf("the frame is %d bytes, want 16", stack.Frame[0].CFA)
		}
	}
	s.publish("x86", unwind.Rule{Kind: unwind.Offset, CFA: 32}, ending)
	stack := s.run(code(0), 0)
	stack.check(t, "native_end", code(0), code(1))
	if stack.Frame[0].CFA != 32 {
		t.Errorf("the frame is %d bytes by the new table, want 32", stack.Frame[0].CFA)
	}
}
