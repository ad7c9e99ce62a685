package unwinding

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testkernel"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/uprobe"
)

func needKernel(t testing.TB) {
	t.Helper()
	testkernel.Need(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
}

// harness is the walk in the kernel with its maps.
type harness struct {
	t       testing.TB
	maps    *Maps
	walk    *ebpf.Collection
	unwind  *Unwinder
	stacks  *ringbuf.Reader
	process *process.Process
	multi   bool
}

func newHarness(t testing.TB, options Options) *harness {
	needKernel(t)
	maps, err := NewMaps(true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(maps.Close)
	spec, err := bpf.LoadNativeWalk()
	if err != nil {
		t.Fatal(err)
	}
	bpf.Fit(spec)
	multi := uprobe.HaveMulti() == nil
	if !multi {
		uprobe.Fit(spec)
	}
	walk, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: maps.Replacements(spec)})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(walk.Close)
	stacks, err := ringbuf.NewReader(walk.Maps["native_taken_ring"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stacks.Close() })
	u := New(maps, options)
	t.Cleanup(u.Close)
	return &harness{t: t, maps: maps, walk: walk, unwind: u, stacks: stacks, multi: multi}
}

// add begins to unwind a process and waits for its tables.
func (h *harness) add(pid int) {
	h.t.Helper()
	p, err := process.Open(pid)
	if errors.Is(err, process.ErrStatic) {
		h.t.Skip(err) // busybox's shell
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.process = p
	if err := h.unwind.AddProcess(p); err != nil {
		h.t.Fatal(err)
	}
	h.unwind.Wait()
}

// probe attaches a program to symbols of a file, as the tracer does on this kernel.
func (h *harness) probe(program, path string, symbols ...string) {
	h.t.Helper()
	x, err := uprobe.Open(path)
	if err != nil {
		h.t.Fatal(err)
	}
	sites, err := uprobe.Symbols(path, symbols...)
	if err != nil {
		h.t.Fatal(err)
	}
	links, err := uprobe.Attach(x, h.walk.Programs[program], sites,
		uprobe.How{PID: h.process.PID, Return: program == "native_at_return", Multi: h.multi})
	h.t.Cleanup(func() {
		for _, l := range links {
			l.Close()
		}
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// taken reads the stacks that were taken so far.
func (h *harness) taken() []bpf.NativeWalkNativeTaken {
	h.t.Helper()
	var all []bpf.NativeWalkNativeTaken
	h.stacks.SetDeadline(time.Now().Add(200 * time.Millisecond))
	for {
		record, err := h.stacks.Read()
		if err != nil {
			if !strings.Contains(err.Error(), os.ErrDeadlineExceeded.Error()) {
				h.t.Fatal(err)
			}
			return all
		}
		var taken bpf.NativeWalkNativeTaken
		if err := binary.Read(bytes.NewReader(record.RawSample), binary.LittleEndian, &taken); err != nil {
			h.t.Fatal(err)
		}
		all = append(all, taken)
	}
}

// symbols are the functions of a program that was not stripped.
type symbols struct {
	functions []elf.Symbol
	bias      uint64
}

func (s symbols) name(pc uint64) string {
	for _, f := range s.functions {
		if at := pc - s.bias; at >= f.Value && at < f.Value+max(f.Size, 1) {
			name, _, _ := strings.Cut(f.Name, ".") // gcc's .localalias
			return name
		}
	}
	return ""
}

func readSymbols(t testing.TB, p *process.Process, path string) symbols {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s := symbols{}
	all, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, symbol := range all {
		if elf.ST_TYPE(symbol.Info) == elf.STT_FUNC && symbol.Section != elf.SHN_UNDEF {
			s.functions = append(s.functions, symbol)
		}
	}
	libraries, err := p.Libraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range libraries {
		if filepath.Base(l.Path) == filepath.Base(path) {
			e, err := l.OpenELF()
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			s.bias, _ = l.Bias(e)
		}
	}
	return s
}

// names are the program's own functions on a stack, leaf first; what lies
// between (libc, generated code) is left out.
func (s symbols) names(stack *bpf.NativeWalkNativeTaken) []string {
	var names []string
	for i, f := range stack.Stack.Frame[:stack.Stack.Count] {
		pc := f.Pc
		if i > 0 && f.Flags&uint32(bpf.NativeWalkNativeFlagNATIVE_SIGNAL) == 0 {
			pc--
		}
		if name := s.name(pc); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// buildNative builds the programs of testdata/native and returns their directory.
func buildNative(t testing.TB) string {
	t.Helper()
	directory := filepath.Join("..", "..", "testdata", "native")
	if out, err := exec.Command("make", "-s", "-C", directory).CombinedOutput(); err != nil {
		t.Fatalf("building the native programs: %v\n%s", err, out)
	}
	absolute, err := filepath.Abs(filepath.Join(directory, "build"))
	if err != nil {
		t.Fatal(err)
	}
	return absolute
}

// job is a program that waits for a line before it begins.
type job struct {
	*exec.Cmd
	in io.WriteCloser
}

func start(t testing.TB, path string, arguments ...string) *job {
	t.Helper()
	command := exec.Command(path, arguments...)
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
	t.Cleanup(func() { command.Process.Kill(); command.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%s said %q: %v", path, line, err)
	}
	return &job{command, in}
}

func (j *job) run(t testing.TB) {
	t.Helper()
	io.WriteString(j.in, "go\n")
	if err := j.Wait(); err != nil {
		t.Fatal(err)
	}
}

// frameChains are the program's own functions in each chain of
// testdata/native/frames.c, in the order in which it runs them.
var frameChains = []struct {
	shape     string
	functions string // leaf first
	outermost string
}{
	{"no frame pointer", "frames_leaf plain_inner plain_outer main", "_start"},
	{"large frame", "frames_leaf plain_inner big_frame main", "_start"},
	{"alloca", "frames_leaf plain_inner dynamic_frame main", "_start"},
	{"realigned stack", "frames_leaf plain_inner realigned main", "_start"},
	{"signal handler", "frames_leaf on_signal signalled main", "_start"},
	{"signal handler on a stack of its own", "frames_leaf on_signal signalled main", "_start"},
	{"call as the last instruction", "frames_leaf leave_for_good ends_in_a_call jumped_over main", "_start"},
	{"through a library", "frames_leaf plain_inner called_back through_library main", "_start"},
	{"pending return probes", "frames_leaf plain_inner probed_target above_probed main", "_start"},
	{"call as the last instruction, return probe", "frames_leaf leave_for_good ends_in_a_call probed_jumped_over main", "_start"},
	{"remains of a return probe", "frames_leaf plain_inner probed_target probed_jumped_over main", "_start"},
	// The innermost of 41 calls jumps into plain_inner.
	{"recursion", "frames_leaf plain_inner" + strings.Repeat(" recursive", 40) + " main", "_start"},
	{"generated code", "frames_leaf plain_inner plain_outer from_generated main", "_start"},
	{"generated code without frame pointer", "frames_leaf plain_inner plain_outer from_frameless main", "_start"},
	{"thread", "frames_leaf plain_inner plain_outer in_thread", ""},
}

func TestEveryShapeOfFrameIsWalkedToTheThreadsStart(t *testing.T) {
	const rounds = 20
	program := filepath.Join(buildNative(t), "frames")
	for _, returns := range []bool{false, true} {
		t.Run(fmt.Sprintf("return probes %v", returns), func(t *testing.T) {
			h := newHarness(t, Options{})
			j := start(t, program, fmt.Sprint(rounds), "wait")
			h.add(j.Process.Pid)
			h.probe("native_at_probe", program, "frames_leaf")
			if returns {
				h.probe("native_at_return", program, "probed_target", "probed_jump", "plain_inner", "ends_in_a_call", "recursive", "frames_leaf")
			}
			s := readSymbols(t, h.process, program)
			j.run(t)
			stacks := h.taken()
			if len(stacks) != rounds*len(frameChains) {
				t.Fatalf("%d stacks of %d calls", len(stacks), rounds*len(frameChains))
			}
			for i := range stacks {
				checkChain(t, s, &stacks[i], i%len(frameChains))
			}
			checkFlags(t, stacks, returns)
		})
	}
}

func checkChain(t *testing.T, s symbols, stack *bpf.NativeWalkNativeTaken, chain int) {
	t.Helper()
	want := frameChains[chain]
	names := s.names(stack)
	if outcome := Outcome(stack.Stack.Outcome); outcome.String() != "native_end" {
		t.Errorf("%s: ended with %v after %d frames %v", want.shape, outcome, stack.Stack.Count, names)
		return
	}
	functions := strings.Fields(want.functions)
	if want.outermost != "" {
		functions = append(functions, want.outermost)
	}
	if !slices.Equal(names, functions) {
		t.Fatalf("%s: walked %v, want %v: %x", want.shape, names, functions, stack.Stack.Frame[:stack.Stack.Count])
	}
	last, flat := uint32(0), uint32(1)
	if runtime.GOARCH == "arm64" {
		flat = 0 // a function that keeps its return address in a register may have no frame
	}
	for i, f := range stack.Stack.Frame[:stack.Stack.Count] {
		if want.shape == "signal handler on a stack of its own" {
			break
		}
		if f.Cfa < last+flat {
			t.Errorf("%s: the address of frame %d does not rise: %#x after %#x", want.shape, i, f.Cfa, last)
		}
		last = f.Cfa
	}
}

func checkFlags(t *testing.T, stacks []bpf.NativeWalkNativeTaken, returns bool) {
	t.Helper()
	seen := map[uint32]int{}
	for i := range stacks {
		for _, f := range stacks[i].Stack.Frame[:stacks[i].Stack.Count] {
			for bit := uint32(1); bit <= 8; bit <<= 1 {
				if f.Flags&bit != 0 {
					seen[bit]++
				}
			}
		}
	}
	if seen[uint32(bpf.NativeWalkNativeFlagNATIVE_SIGNAL)] == 0 || seen[uint32(bpf.NativeWalkNativeFlagNATIVE_FRAME_POINTER)] == 0 {
		t.Errorf("no frame is marked as interrupted, or as found by frame pointer: %v", seen)
	}
	// Instructions are read for it on x86-64 only.
	if seen[uint32(bpf.NativeWalkNativeFlagNATIVE_INFERRED)] == 0 && runtime.GOARCH == "amd64" {
		t.Errorf("no frame is marked as inferred from generated code: %v", seen)
	}
	if repaired := seen[uint32(bpf.NativeWalkNativeFlagNATIVE_REPAIRED)]; (repaired > 0) != returns {
		t.Errorf("%d repaired frames, return probes attached: %v", repaired, returns)
	}
}

// What was generated after the process was looked at is found by the walks
// themselves, and looked at then.
func TestCodeGeneratedLaterIsUnderstoodSoon(t *testing.T) {
	h := newHarness(t, Options{})
	program := filepath.Join(buildNative(t), "frames")
	j := start(t, program, "15", "wait", "late")
	h.add(j.Process.Pid)
	h.probe("native_at_probe", program, "frames_leaf")
	s := readSymbols(t, h.process, program)
	j.run(t)
	stacks := h.taken()
	if len(stacks) != 15 {
		t.Fatalf("%d stacks of 15 calls", len(stacks))
	}
	for i := range stacks {
		names, outcome := s.names(&stacks[i]), Outcome(stacks[i].Stack.Outcome).String()
		if outcome != "native_end" && i >= 10 {
			t.Errorf("call %d, a second after the code was made: %s after %v", i, outcome, names)
		}
		if want := strings.Fields("frames_leaf plain_inner plain_outer from_late main _start"); outcome == "native_end" &&
			!slices.Equal(names, want) {
			t.Errorf("call %d: walked %v, want %v", i, names, want)
		}
	}
}

func TestOutcomesCountEveryWalk(t *testing.T) {
	h := newHarness(t, Options{})
	program := filepath.Join(buildNative(t), "frames")
	j := start(t, program, "5", "wait")
	h.add(j.Process.Pid)
	h.probe("native_at_probe", program, "frames_leaf")
	j.run(t)
	counts, err := h.maps.Outcomes()
	if err != nil {
		t.Fatal(err)
	}
	want := make([]uint64, len(Outcomes))
	want[0] = uint64(5 * len(frameChains))
	if !slices.Equal(counts, want) {
		t.Errorf("outcomes %v, want %v", counts, want)
	}
}

func TestWithoutTablesFramePointersAreTriedAndSaidSo(t *testing.T) {
	h := newHarness(t, Options{MemoryBytes: 1}) // one shard: not room for all
	h.unwind.room.leaves.limit = 0
	program := filepath.Join(buildNative(t), "frames")
	j := start(t, program, "1", "wait")
	h.add(j.Process.Pid)
	h.probe("native_at_probe", program, "frames_leaf")
	status, ok := h.unwind.Status(j.Process.Pid)
	if !ok || len(status.Files) == 0 {
		t.Fatalf("no status: %+v", status)
	}
	for _, f := range status.Files {
		if f.State != Absent || f.Reason == nil {
			t.Errorf("%s is %s (%v) without room for a table", f.Path, f.State, f.Reason)
		}
	}
	j.run(t)
	for _, stack := range h.taken() {
		if stack.Stack.Count == 0 || Outcome(stack.Stack.Outcome) != Outcome(bpf.NativeWalkNativeOutcomeNATIVE_NO_TABLE) &&
			Outcome(stack.Stack.Outcome) != Outcome(bpf.NativeWalkNativeOutcomeNATIVE_END) {
			t.Errorf("%d frames, %v", stack.Stack.Count, Outcome(stack.Stack.Outcome))
		}
		for _, f := range stack.Stack.Frame[1:max(1, stack.Stack.Count)] {
			if f.Flags&uint32(bpf.NativeWalkNativeFlagNATIVE_FRAME_POINTER) == 0 {
				t.Errorf("a caller found without a table is not marked: %+v", f)
			}
		}
	}
}

func TestTablesAreSharedAndComeFromTheCache(t *testing.T) {
	cache := unwind.Cache{Directory: t.TempDir()}
	h := newHarness(t, Options{Cache: cache})
	program := filepath.Join(buildNative(t), "frames")
	first, second := start(t, program, "1", "wait"), start(t, program, "1", "wait")
	h.add(first.Process.Pid)
	// Generated code is each process's own.
	_, used := h.unwind.Memory()
	h.add(second.Process.Pid)
	own, _ := h.unwind.Status(second.Process.Pid)
	if _, now := h.unwind.Memory(); now-own.GeneratedBytes != used {
		t.Errorf("a second process with the same files: %d bytes of tables, %d before", now, used)
	}
	entries, err := os.ReadDir(cache.Directory)
	if err != nil || len(entries) < 3 {
		t.Errorf("%d tables in the cache (%v)", len(entries), err)
	}
	if err := h.unwind.RemoveProcess(first.Process.Pid); err != nil {
		t.Fatal(err)
	}
	h.probe("native_at_probe", program, "frames_leaf")
	second.run(t)
	if stacks := h.taken(); len(stacks) != len(frameChains) || Outcome(stacks[0].Stack.Outcome).String() != "native_end" {
		t.Errorf("%d stacks after the other process was removed", len(stacks))
	}
}

func TestForkedChildHasItsParentsMappingsAtOnce(t *testing.T) {
	h := newHarness(t, Options{})
	spec, err := bpf.LoadLife()
	if err != nil {
		t.Fatal(err)
	}
	life, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: h.maps.Replacements(spec)})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	defer life.Close()
	for tracepoint, program := range map[string]string{"sched_process_fork": "process_fork", "sched_process_exec": "process_exec"} {
		l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: tracepoint, Program: life.Programs[program]})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	shell := exec.Command("/bin/sh", "-c", `echo ready; read go; (read stay <"$1") & echo $!; read go; exec sleep 1`, "sh", fifo(t))
	in, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { shell.Process.Kill(); shell.Wait() }()
	lines := bufio.NewScanner(out)
	lines.Scan()
	h.add(shell.Process.Pid)
	if err := life.Maps["targets"].Put(uint32(shell.Process.Pid), bpf.CallTarget{Follow: 1}); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, "go")
	lines.Scan()
	var child int
	if _, err := fmt.Sscan(lines.Text(), &child); err != nil {
		t.Fatalf("the shell said %q", lines.Text())
	}
	defer syscall.Kill(child, syscall.SIGKILL)
	var parents, childs bpf.NativeWalkUnwindProcess
	if err := h.maps.processes.Lookup(uint32(shell.Process.Pid), &parents); err != nil {
		t.Fatal(err)
	}
	if err := h.maps.processes.Lookup(uint32(child), &childs); err != nil || childs != parents {
		t.Errorf("the child's mappings are not its parent's (%v)", err)
	}
	fmt.Fprintln(in, "go") // exec
	for range 100 {
		if errors.Is(h.maps.processes.Lookup(uint32(shell.Process.Pid), &parents), ebpf.ErrKeyNotExist) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the mappings of the program before the exec are still there")
}

// fifo is a file whose reader waits for ever.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
