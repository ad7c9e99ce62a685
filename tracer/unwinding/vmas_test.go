package unwinding

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// untoldStacks are the stacks of a program of which the kernel is not told what it maps.
func untoldStacks(t *testing.T, h *harness, program string) (symbols, []bpf.NativeWalkNativeTaken) {
	t.Helper()
	j := start(t, program, "1", "wait")
	p, err := process.Open(j.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	h.process = p
	h.probe("native_at_probe", program, "frames_leaf")
	s := readSymbols(t, p, program)
	j.run(t)
	stacks := h.taken()
	if len(stacks) != len(frameChains) {
		t.Fatalf("%d stacks of %d calls", len(stacks), len(frameChains))
	}
	return s, stacks
}

// A process that runs the same files as another is walked before its mappings are told:
// down to its start, but for code without a file. Once a file may be another, it is not;
// and nothing is left when its table goes.
func TestAProcessIsWalkedBeforeItsMappingsAreTold(t *testing.T) {
	h := newHarness(t, Options{})
	if err := features.HaveProgramHelper(ebpf.Kprobe, asm.FnFindVma); err != nil {
		t.Skip(err)
	}
	directory := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(directory, os.DirFS(buildNative(t))); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(directory, "frames")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := h.maps.FindVMAs(); err != nil {
		t.Fatal(err)
	}
	first := start(t, program, "1", "wait")
	h.add(first.Process.Pid)

	s, stacks := untoldStacks(t, h, program)
	for chain, want := range frameChains {
		if !strings.Contains(want.shape, "generated") && !strings.Contains(want.shape, "return probe") {
			checkChain(t, s, &stacks[chain], chain)
		}
	}
	if generated := slices.IndexFunc(stacks, func(s bpf.NativeWalkNativeTaken) bool {
		return Outcome(s.Stack.Outcome).String() == "native_no_process"
	}); generated < 0 {
		t.Error("generated code has been walked: by what?")
	}

	// Whoever changes a file changes the time of its inode.
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	_, stacks = untoldStacks(t, h, program)
	for i := range stacks {
		if outcome := Outcome(stacks[i].Stack.Outcome); outcome.String() != "native_no_process" {
			t.Errorf("%s: %v, though the file may be another", frameChains[i].shape, outcome)
		}
	}

	if err := h.unwind.RemoveProcess(first.Process.Pid); err != nil {
		t.Fatal(err)
	}
	h.unwind.mu.Lock()
	h.unwind.files.reading = nil
	for h.unwind.room.evict(nil) {
	}
	h.unwind.mu.Unlock()
	var inode bpf.NativeWalkUnwindInode
	var pid uint32
	if h.maps.inodes.NextKey(nil, &inode) == nil || h.maps.vmas.NextKey(nil, &pid) == nil {
		t.Error("the kernel still leads to the numbers of files whose tables are gone")
	}
}

// endOfSystemCalls runs the program at the end of all system calls, with maps of others.
func endOfSystemCalls(t *testing.T, maps map[string]*ebpf.Map) {
	t.Helper()
	spec, err := bpf.LoadSample()
	if err != nil {
		t.Fatal(err)
	}
	const program = "sample_syscall_end"
	for name := range spec.Programs {
		if name != program {
			delete(spec.Programs, name)
		}
	}
	shared := map[string]*ebpf.Map{}
	for name, m := range maps {
		if spec.Maps[name] != nil && (!strings.HasPrefix(name, ".") || name == ".data.targets") {
			shared[name] = m
		}
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: shared})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(c.Close)
	l, err := link.AttachTracing(link.TracingOptions{Program: c.Programs[program]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
}

// A program and its dynamic linker are found as it begins, its libraries as they are mapped.
func TestAProgramIsFoundAsItBegins(t *testing.T) {
	h := newHarness(t, Options{})
	if err := features.HaveProgramHelper(ebpf.Kprobe, asm.FnFindVma); err != nil {
		t.Skip(err)
	}
	if err := h.maps.FindVMAs(); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(buildNative(t), "frames")
	h.add(start(t, program, "1", "wait").Process.Pid)
	spec, err := bpf.LoadLife()
	if err != nil {
		t.Fatal(err)
	}
	life, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: h.maps.Replacements(spec)})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	defer life.Close()
	l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sched_process_exec", Program: life.Programs["process_exec"]})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	maps := h.maps.Replacements(spec)
	maps["targets"], maps[".data.targets"] = life.Maps["targets"], life.Maps[".data.targets"]
	endOfSystemCalls(t, maps)

	shell := exec.Command("/bin/sh", "-c", `read go; exec "$0" 1 wait`, program)
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
	if err := life.Maps["targets"].Put(uint32(shell.Process.Pid), bpf.CallTarget{Follow: 1}); err != nil {
		t.Fatal(err)
	}
	noted, err := life.Maps[".data.targets"].Memory()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := noted.WriteAt([]byte{1}, int64(shell.Process.Pid&0xffff)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, "go")
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%s said %q: %v", program, line, err)
	}
	var found struct {
		Count uint64
		VMAs  [16]struct{ Start, Bytes, Address, File uint64 }
	}
	if err := h.maps.vmas.Lookup(uint32(shell.Process.Pid), &found); err != nil || found.Count != 4 {
		t.Fatalf("%d mappings are found, want those of the program, the linker and two libraries (%v)", found.Count, err)
	}
	libraries, err := (&process.Process{PID: shell.Process.Pid}).Libraries()
	if err != nil {
		t.Fatal(err)
	}
	for i, of := range []string{filepath.Base(program), "ld-linux", "libframes.so", "libc.so"} {
		in := slices.ContainsFunc(libraries, func(l *process.Library) bool {
			return strings.HasPrefix(filepath.Base(l.Path), of) &&
				slices.ContainsFunc(l.Segments, func(s process.Segment) bool { return s.Start == found.VMAs[i].Start })
		})
		if !in {
			t.Errorf("no mapping of %s begins at %#x", of, found.VMAs[i].Start)
		}
	}
}
