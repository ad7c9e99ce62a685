package python

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/internal/testkit/pythons"
	"github.com/ebpfprof/ebpfprof/symbolize/callstack"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/unwinding"
	"github.com/ebpfprof/ebpfprof/tracer/uprobe"
)

// nativeWalker takes native stacks where a walker takes Python's.
type nativeWalker struct {
	t       *testing.T
	walk    *ebpf.Collection
	unwind  *unwinding.Unwinder
	ring    *ringbuf.Reader
	process *process.Process
}

func newNativeWalker(t *testing.T, pid int) *nativeWalker {
	t.Helper()
	maps, err := unwinding.NewMaps(true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(maps.Close)
	spec, err := bpf.LoadNativeWalk()
	if err != nil {
		t.Fatal(err)
	}
	spec.Maps["native_taken_ring"].MaxEntries = 16 << 20
	bpf.Fit(spec)
	if uprobe.HaveMulti() != nil {
		uprobe.Fit(spec)
	}
	n := &nativeWalker{t: t}
	n.walk, err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: maps.Replacements(spec)})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(n.walk.Close)
	if n.ring, err = ringbuf.NewReader(n.walk.Maps["native_taken_ring"]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.ring.Close() })
	n.unwind = unwinding.New(maps, unwinding.Options{})
	t.Cleanup(n.unwind.Close)
	if n.process, err = process.Open(pid); err != nil {
		t.Fatal(err)
	}
	if err := n.unwind.AddProcess(n.process); err != nil {
		t.Fatal(err)
	}
	n.unwind.Wait()
	return n
}

func (n *nativeWalker) probeGetppid() {
	n.t.Helper()
	atGetppid(n.t, n.process.PID, n.walk.Programs["native_at_probe"])
}

func (n *nativeWalker) taken() map[uint32][]*bpf.NativeWalkNativeTaken {
	n.t.Helper()
	byThread := map[uint32][]*bpf.NativeWalkNativeTaken{}
	n.ring.SetDeadline(time.Now().Add(50 * time.Millisecond))
	for {
		record, err := n.ring.Read()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return byThread
		}
		if err != nil {
			n.t.Fatal(err)
		}
		taken := new(bpf.NativeWalkNativeTaken)
		if err := binary.Read(bytes.NewReader(record.RawSample), binary.LittleEndian, taken); err != nil {
			n.t.Fatal(err)
		}
		byThread[taken.Start.Tid] = append(byThread[taken.Start.Tid], taken)
	}
}

// loop is the code of the interpreter's loop, as far as symbols say.
type loop struct {
	ranges [][2]uint64
	// others are the functions that surely are not the loop.
	others [][2]uint64
	// split: the symbol covers the way in only. Debian's 3.14 is made so that
	// the rest is in functions without a name.
	split bool
}

func findLoop(t *testing.T, p *process.Process) loop {
	t.Helper()
	libraries, err := p.Libraries()
	if err != nil {
		t.Fatal(err)
	}
	found, err := p.Python(libraries)
	if err != nil {
		t.Fatal(err)
	}
	file, err := found.Library.OpenELF()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	bias, _ := found.Library.Bias(file)
	var l loop
	for _, s := range file.FunctionsWithPrefixes([]string{""}) {
		code := [2]uint64{s.Address + bias, s.Address + s.Size + bias}
		if strings.HasPrefix(s.Name, "_PyEval_EvalFrameDefault") {
			l.ranges = append(l.ranges, code)
			l.split = l.split || s.Name == "_PyEval_EvalFrameDefault" && s.Size < 8192
		} else {
			l.others = append(l.others, code)
		}
	}
	if len(l.ranges) == 0 {
		t.Fatal("no symbol of the interpreter's loop")
	}
	return l
}

func within(ranges [][2]uint64, pc uint64) bool {
	for _, r := range ranges {
		if pc-1 >= r[0] && pc-1 < r[1] { // the call, not the return address
			return true
		}
	}
	return false
}

// runs reports that a frame is a run of the loop; may, that no symbol denies it.
func (l loop) runs(pc uint64) bool { return within(l.ranges, pc) }
func (l loop) may(pc uint64) bool  { return l.runs(pc) || l.split && !within(l.others, pc) }

// TestEachRunOfTheLoopIsReplacedByItsOwnPythonFrames: the anchors say which
// native frame executes which Python frames; the symbols, which the merge does
// not look at (but in 3.8 and 3.9), must say the same.
func TestEachRunOfTheLoopIsReplacedByItsOwnPythonFrames(t *testing.T) {
	eachPython(t, func(t *testing.T, python pythons.Python) {
		w := newWalker(t)
		j := startJob(t, python)
		pid := j.cmd.Process.Pid
		w.follow(pid, openPID(t, pid))
		n := newNativeWalker(t, pid)
		n.probeGetppid()
		w.probeGetppid(pid)
		l := findLoop(t, n.process)
		j.say("run")
		want := noted(t, j.line())
		native, lines := n.taken(), w.taken()
		whole, cut := 0, 0
		for tid, noted := range want {
			if len(native[tid]) != len(noted) || len(lines[tid]) != len(noted) {
				t.Errorf("thread %d: %d native and %d Python stacks, the job noted %d", tid, len(native[tid]), len(lines[tid]), len(noted))
				continue
			}
			for i, k := range noted {
				if checkMerged(t, l, native[tid][i], lines[tid][i], k) {
					whole++
				} else {
					cut++
				}
			}
		}
		t.Logf("%d stacks whole, %d longer than 128 frames", whole, cut)
		if whole < 50 {
			t.Errorf("only %d whole stacks", whole)
		}
	})
}

// checkMerged reports whether both walks reached the thread's start.
func checkMerged(t *testing.T, l loop, native *bpf.NativeWalkNativeTaken, python *bpf.PythonWalkPythonTaken, k known) bool {
	t.Helper()
	s := callstack.Stack{
		SP: native.Stack.Sp, Python: int(python.Stack.Count),
		NativeWhole: native.Stack.Outcome == uint32(bpf.NativeWalkNativeOutcomeNATIVE_END),
		PythonWhole: Outcome(python.Stack.Outcome).Whole(),
	}
	for _, f := range native.Stack.Frame[:native.Stack.Count] {
		frame := callstack.Native{Eval: l.runs(f.Pc), Signal: f.Flags&uint32(bpf.NativeWalkNativeFlagNATIVE_SIGNAL) != 0}
		if f.Cfa != ^uint32(0) {
			frame.CFA = native.Stack.Sp + uint64(f.Cfa)
		}
		s.Native = append(s.Native, frame)
	}
	for _, segment := range python.Stack.Segment[:python.Stack.Segments] {
		s.Segments = append(s.Segments, callstack.Segment{Anchor: segment.Anchor, End: int(segment.End)})
	}
	merged := callstack.Merge(&s, 0)
	if merged.Unmerged {
		t.Errorf("%s: unmerged", k.label)
	}
	shown, next := map[int]bool{}, 0
	for _, f := range merged.Frames {
		if f.Python && f.Index != next {
			t.Errorf("%s: Python frame %d where %d belongs", k.label, f.Index, next)
		}
		if f.Python {
			next++
		} else {
			shown[f.Index] = true
		}
	}
	for i, f := range s.Native {
		if s.PythonWhole && f.Eval && shown[i] {
			t.Errorf("%s: frame %d of %d runs Python, but has no Python frames", k.label, i, len(s.Native))
		}
		if pc := native.Stack.Frame[i].Pc; !shown[i] && !l.may(pc) {
			t.Errorf("%s: frame %d of %d (%#x) is no run of the loop, but was replaced", k.label, i, len(s.Native), pc)
		}
	}
	return s.NativeWhole && s.PythonWhole
}
