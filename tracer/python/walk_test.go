package python

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/internal/testkit/pythons"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/uprobe"
)

// maxFrames is MAX_PYTHON_FRAMES in bpf/stack.h.
const maxFrames = 128

// walker is the walk in the kernel, without the rest of the tracer.
type walker struct {
	t       *testing.T
	objects bpf.PythonWalkObjects
	ring    *ringbuf.Reader
}

func newWalker(t *testing.T) *walker {
	t.Helper()
	if testing.Short() {
		t.Skip("kernel: not in -short")
	}
	if os.Geteuid() != 0 {
		t.Skip("kernel: needs root")
	}
	w := &walker{t: t}
	spec, err := bpf.LoadPythonWalk()
	if err != nil {
		t.Fatal(err)
	}
	bpf.Fit(spec)
	if uprobe.HaveMulti() != nil {
		uprobe.Fit(spec)
	}
	if err := spec.LoadAndAssign(&w.objects, nil); err != nil {
		var refused *ebpf.VerifierError
		if errors.As(err, &refused) {
			t.Fatalf("%+v", refused)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { w.objects.Close() })
	ring, err := ringbuf.NewReader(w.objects.Taken)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ring.Close() })
	w.ring = ring
	return w
}

func (w *walker) follow(pid int, i *Interpreter) {
	w.t.Helper()
	value, err := i.KernelValue()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.objects.PythonRuntimes.Put(uint32(pid), value); err != nil {
		w.t.Fatal(err)
	}
}

// probeGetppid takes a stack at every call of libc's getppid, in all processes
// that are followed.
func (w *walker) probeGetppid(pid int) {
	w.t.Helper()
	atGetppid(w.t, pid, w.objects.PythonAtProbe)
}

// atGetppid attaches a program to libc's getppid of all processes, as the tracer does
// on this kernel.
func atGetppid(t *testing.T, pid int, program *ebpf.Program) {
	t.Helper()
	path := libcPath(t, pid)
	executable, err := uprobe.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	sites, err := uprobe.Symbols(path, "getppid")
	if err != nil {
		t.Fatal(err)
	}
	links, err := uprobe.Attach(executable, program, sites, uprobe.How{Multi: uprobe.HaveMulti() == nil})
	t.Cleanup(func() {
		for _, l := range links {
			l.Close()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func libcPath(t *testing.T, pid int) string {
	t.Helper()
	p, err := process.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := p.Libraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range libraries {
		if libcName.MatchString(l.Name()) || muslName.MatchString(l.Name()) {
			file, _, err := l.Open()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { file.Close() })
			return fmt.Sprintf("/proc/self/fd/%d", file.Fd())
		}
	}
	t.Fatal("the job has no libc")
	return ""
}

// taken returns the stacks that are in the ring, by thread.
func (w *walker) taken() map[uint32][]*bpf.PythonWalkPythonTaken {
	w.t.Helper()
	byThread := map[uint32][]*bpf.PythonWalkPythonTaken{}
	w.ring.SetDeadline(time.Now().Add(50 * time.Millisecond))
	for {
		record, err := w.ring.Read()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return byThread
		}
		if err != nil {
			w.t.Fatal(err)
		}
		taken := new(bpf.PythonWalkPythonTaken)
		if err := binary.Read(bytes.NewReader(record.RawSample), binary.LittleEndian, taken); err != nil {
			w.t.Fatal(err)
		}
		byThread[taken.Start.NsTid] = append(byThread[taken.Start.NsTid], taken)
	}
}

// named resolves a stack, leaf first.
func named(t *testing.T, i *Interpreter, s *bpf.PythonWalkPythonStack) []frame {
	t.Helper()
	frames := make([]frame, 0, s.Count)
	for _, f := range s.Frame[:s.Count] {
		code, err := i.Resolver.Resolve(f.Code, f.Checksum)
		if err != nil {
			t.Fatal(err)
		}
		line, ok := code.Line(f.Instruction)
		if !ok {
			line = -1
		}
		frames = append(frames, frame{code.Function, code.File, line})
	}
	return frames
}

func equal(got, want []frame) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		if got[i] != want[i] {
			return false
		}
	}
	return true
}

func eachPython(t *testing.T, test func(t *testing.T, python pythons.Python)) {
	t.Helper()
	for _, python := range pythons.Installed() {
		t.Run(python.Name(), func(t *testing.T) { test(t, python) })
	}
}

func TestEveryStackIsTheOneThatTheJobSaw(t *testing.T) {
	eachPython(t, func(t *testing.T, python pythons.Python) {
		w := newWalker(t)
		j := startJob(t, python)
		i := openPID(t, j.cmd.Process.Pid)
		if !i.Verified {
			t.Error("the key was not verified against a thread")
		}
		w.follow(j.cmd.Process.Pid, i)
		w.probeGetppid(j.cmd.Process.Pid)
		j.say("run")
		want := noted(t, j.line())
		got := w.taken()
		compareStacks(t, i, got, want)
	})
}

func compareStacks(t *testing.T, i *Interpreter, got map[uint32][]*bpf.PythonWalkPythonTaken, want map[uint32][]known) {
	t.Helper()
	stacks, frames := 0, 0
	for tid, noted := range want {
		if len(got[tid]) != len(noted) {
			t.Errorf("thread %d: %d stacks, the job noted %d", tid, len(got[tid]), len(noted))
			continue
		}
		for n, k := range noted {
			compareStack(t, i, &got[tid][n].Stack, k)
			checkAnchors(t, i, got[tid][n], k.label)
			stacks++
			frames += len(k.frames)
		}
	}
	t.Logf("%d stacks of %d threads, %d frames", stacks, len(want), frames)
}

// holdsGIL is whether getppid is called with the GIL, by the label of the stack.
var holdsGIL = map[string]uint8{
	"nested": 1, "sorted": 1, "generator": 1, "through_c": 1, "in_gc": 1, "kept": 1,
	"released": 0, "handler": 0, "coroutine": 0, "exit": 0,
}

func compareStack(t *testing.T, i *Interpreter, s *bpf.PythonWalkPythonStack, k known) {
	t.Helper()
	outcome, want := "python_ok", k.frames
	if len(want) > maxFrames {
		outcome, want = "python_max_frames", want[:maxFrames]
	}
	if name := Outcome(s.Outcome).Name(); name != outcome {
		t.Errorf("%s: %s, want %s", k.label, name, outcome)
	}
	if frames := named(t, i, s); !equal(frames, want) {
		t.Errorf("%s: the walk saw%s\nthe job saw%s", k.label, format(frames), format(want))
	}
	if want, known := holdsGIL[k.label]; known && s.HoldsGil != want {
		t.Errorf("%s: holds_gil is %d", k.label, s.HoldsGil)
	}
	if collecting := k.label == "in_gc"; collecting != (s.InGc == 1) {
		t.Errorf("%s: in_gc is %d", k.label, s.InGc)
	}
}

// checkAnchors expects the segments to cover all frames, and each anchor to lie
// on the thread's stack above the one before. A cut walk has them, too.
func checkAnchors(t *testing.T, i *Interpreter, taken *bpf.PythonWalkPythonTaken, label string) {
	t.Helper()
	s := &taken.Stack
	segments := s.Segment[:s.Segments]
	if len(segments) == 0 || segments[len(segments)-1].End != s.Count {
		t.Errorf("%s: %d segments do not cover %d frames", label, len(segments), s.Count)
		return
	}
	if i.Version.Minor < 10 {
		if len(segments) != 1 || segments[0].Anchor != 0 {
			t.Errorf("%s: segments where the version has no anchors: %v", label, segments)
		}
		return
	}
	above := taken.Start.Sp
	for n, segment := range segments {
		if segment.Anchor <= above || segment.Anchor > taken.Start.Sp+8<<20 {
			t.Errorf("%s: segment %d of %d is anchored at %#x, the one before at %#x", label, n, len(segments), segment.Anchor, above)
			return
		}
		above = segment.Anchor
	}
}

func TestAForkedChildIsWalkedWithItsParentsRuntime(t *testing.T) {
	eachPython(t, func(t *testing.T, python pythons.Python) {
		w := newWalker(t)
		j := startJob(t, python)
		i := openPID(t, j.cmd.Process.Pid)
		j.say("fork")
		pid, err := strconv.Atoi(j.line())
		if err != nil {
			t.Fatal(err)
		}
		w.follow(pid, i)
		w.probeGetppid(pid)
		child := openPID(t, pid)
		j.say("")
		want := noted(t, j.line())
		compareStacks(t, child, w.taken(), want)
		j.say("")
	})
}

func TestAThreadThatSleepsWithoutTheGILIsWalked(t *testing.T) {
	eachPython(t, func(t *testing.T, python pythons.Python) {
		w := newWalker(t)
		j := startJob(t, python)
		pid := j.cmd.Process.Pid
		i := openPID(t, pid)
		w.follow(pid, i)
		j.say("sleep")
		tid, _ := strconv.Atoi(j.line())
		l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sys_exit", Program: w.objects.PythonAtSyscall})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		l.Close()
		stacks := w.taken()[uint32(tid)]
		asleep := 0
		for _, s := range stacks {
			frames := named(t, i, &s.Stack)
			if len(frames) == 0 || frames[0].function != "sleeper" {
				continue
			}
			asleep++
			checkBelow(t, frames[1:])
		}
		if asleep < 5 {
			t.Errorf("%d of %d system calls were walked to the sleeping function", asleep, len(stacks))
		}
		j.say("")
	})
}

// checkBelow expects the frames below a thread's function.
func checkBelow(t *testing.T, frames []frame) {
	t.Helper()
	want := []string{"run", "_bootstrap_inner", "_bootstrap"}
	if len(frames) != len(want) {
		t.Errorf("below the thread's function:%s", format(frames))
		return
	}
	for i, f := range frames {
		if f.function != want[i] && f.function != "Thread."+want[i] || !strings.HasSuffix(f.file, "threading.py") {
			t.Errorf("below the thread's function:%s", format(frames))
			return
		}
	}
}

func TestEverySampleOfASpinningThreadIsRight(t *testing.T) {
	eachPython(t, func(t *testing.T, python pythons.Python) {
		w := newWalker(t)
		j := startJob(t, python)
		pid := j.cmd.Process.Pid
		i := openPID(t, pid)
		w.follow(pid, i)
		j.say("spin")
		tid, _ := strconv.Atoi(j.line())
		w.sample(tid)
		stacks := w.taken()[uint32(tid)]
		spinning := 0
		for _, s := range stacks {
			if name := Outcome(s.Stack.Outcome).Name(); name != "python_ok" {
				t.Errorf("a sample ended with %s", name)
			}
			frames := named(t, i, &s.Stack)
			if len(frames) < 6 || frames[0].function != "spin" {
				continue // the thread was just beginning
			}
			spinning++
			want := []string{"spin", "lambda", "spinner"}
			for n, name := range want {
				if !strings.Contains(frames[n].function, name) {
					t.Fatalf("a sample of a spinning thread:%s", format(frames))
				}
			}
			code, _ := i.Resolver.Resolve(s.Stack.Frame[0].Code, s.Stack.Frame[0].Checksum)
			if line := frames[0].line; line <= code.FirstLine || line > code.FirstLine+3 {
				t.Errorf("the spinning function, which begins at line %d, is at line %d", code.FirstLine, line)
			}
			checkBelow(t, frames[3:])
		}
		t.Logf("%d samples, %d of them in the spinning function", len(stacks), spinning)
		if spinning < 10 {
			t.Errorf("only %d of %d samples are of the spinning function", spinning, len(stacks))
		}
		j.say("")
	})
}

// sampled is for how long.
const sampled = 400 * time.Millisecond

// sample takes a thread's stacks at the ticks of its own clock, for a while.
func (w *walker) sample(tid int) {
	w.t.Helper()
	attributes := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK,
		Sample: 1_000_000, Bits: unix.PerfBitDisabled, // a millisecond
	}
	fd, err := unix.PerfEventOpen(&attributes, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		w.t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, w.objects.PythonAtTick.FD()); err != nil {
		w.t.Fatal(err)
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(sampled)
}

// Its threads have other numbers there, and CPython knows only those.
func TestAJobInItsOwnPidNamespaceIsWalked(t *testing.T) {
	eachPython(t, func(t *testing.T, python pythons.Python) {
		w := newWalker(t)
		program := []string{"--pid", "--fork", "--kill-child", python.Path, "../../testdata/jobs/stacks.py"}
		j := startJob(t, pythons.Python{Path: "/usr/bin/unshare"}, program...)
		children, err := process.Children(j.cmd.Process.Pid)
		if err != nil || len(children) != 1 {
			t.Fatalf("the children of unshare: %v, %v", children, err)
		}
		i := openPID(t, children[0])
		w.follow(children[0], i)
		w.probeGetppid(children[0])
		j.say("run")
		want := noted(t, j.line())
		if want[1] == nil {
			t.Error("the job's main thread is not number 1 of a namespace")
		}
		compareStacks(t, i, w.taken(), want)
	})
}
