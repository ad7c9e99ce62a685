package samples

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/internal/testkit/pythons"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/python"
)

// pythonWalk is what walking one version's frames costs, in the kernel.
type pythonWalk struct {
	version string
	start   float64 // ns until the first frame
	frame   float64 // ns a frame, one run of the interpreter loop
	runs    float64 // ns a frame, each second one a run of its own
	forty   float64 // ns for 40 frames
}

// Frames of the stacks that are timed: the slope between the outer two is the
// price of a frame.
const fewFrames, fortyFrames, manyFrames = 10, 40, 110

// MeasurePythonWalk times the walk itself, from the first read to the last,
// with the stacks warm in the caches: as a sample meets what it has interrupted.
func (r *Results) MeasurePythonWalk() error {
	for _, p := range pythons.Installed() {
		w, err := timePythonWalk(p)
		if err != nil {
			return fmt.Errorf("timing the walk of Python %s: %w", p.Version, err)
		}
		setup.Say("  Python %s: %.0f ns a frame, %.0f ns with a C function between every two, %.1f µs for %d frames", p.Name(), w.frame, w.runs,
			w.forty/1e3, fortyFrames)
		r.pythonWalks = append(r.pythonWalks, w)
	}
	return nil
}

func timePythonWalk(p pythons.Python) (*pythonWalk, error) {
	t, err := newWalkTimer(p)
	if err != nil {
		return nil, err
	}
	defer t.close()
	w := &pythonWalk{version: p.Name()}
	few, err := t.time(fewFrames, "")
	if err != nil {
		return nil, err
	}
	if w.forty, err = t.time(fortyFrames, ""); err != nil {
		return nil, err
	}
	many, err := t.time(manyFrames, "")
	if err != nil {
		return nil, err
	}
	fewRuns, err := t.time(fewFrames, " c")
	if err != nil {
		return nil, err
	}
	manyRuns, err := t.time(manyFrames, " c")
	if err != nil {
		return nil, err
	}
	w.frame = (many - few) / (manyFrames - fewFrames)
	w.runs = (manyRuns - fewRuns) / (manyFrames - fewFrames)
	w.start = few - fewFrames*w.frame
	return w, nil
}

// walkTimer is jobs/deep.py with a probe on getppid that takes its stack.
type walkTimer struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	out     *bufio.Scanner
	objects bpf.PythonWalkObjects
	ring    *ringbuf.Reader
	probe   link.Link
}

func newWalkTimer(p pythons.Python) (t *walkTimer, err error) {
	t = &walkTimer{cmd: exec.Command("taskset", "-c", strconv.Itoa(setup.JobCore), p.Path, "internal/dev/bench/jobs/deep.py")}
	t.cmd.Stderr = os.Stderr
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if t.stdin, err = t.cmd.StdinPipe(); err != nil {
		return t, err
	}
	stdout, err := t.cmd.StdoutPipe()
	if err != nil {
		return t, err
	}
	t.out = bufio.NewScanner(stdout)
	if err := t.cmd.Start(); err != nil {
		return t, err
	}
	if !t.out.Scan() {
		return t, errors.New("the job did not start")
	}
	if err := bpf.LoadPythonWalkObjects(&t.objects, nil); err != nil {
		return t, err
	}
	if t.ring, err = ringbuf.NewReader(t.objects.Taken); err != nil {
		return t, err
	}
	return t, t.attach()
}

func (t *walkTimer) attach() error {
	p, err := process.Open(t.cmd.Process.Pid)
	if err != nil {
		return err
	}
	libraries, err := p.Libraries()
	if err != nil {
		return err
	}
	interpreter, err := python.Open(p, libraries)
	if err != nil {
		return err
	}
	defer interpreter.Close()
	value, err := interpreter.KernelValue()
	if err != nil {
		return err
	}
	if err := t.objects.PythonRuntimes.Put(uint32(p.PID), value); err != nil {
		return err
	}
	for _, l := range libraries {
		if l.Name() != "libc.so.6" {
			continue
		}
		file, _, err := l.Open()
		if err != nil {
			return err
		}
		defer file.Close()
		libc, err := link.OpenExecutable(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
		if err != nil {
			return err
		}
		t.probe, err = libc.UprobeMulti([]string{"getppid"}, t.objects.PythonAtProbe, &link.UprobeMultiOptions{PID: uint32(p.PID)})
		return err
	}
	return errors.New("the job has no libc.so.6")
}

// time returns the median time of a walk over exactly so many frames.
func (t *walkTimer) time(frames int, kind string) (float64, error) {
	if _, err := fmt.Fprintf(t.stdin, "%d%s\n", frames, kind); err != nil {
		return 0, err
	}
	var times []float64
	var record ringbuf.Record
	done := make(chan bool, 1)
	go func() { done <- t.out.Scan() }()
	for ended := false; ; {
		t.ring.SetDeadline(time.Now().Add(20 * time.Millisecond))
		err := t.ring.ReadInto(&record)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if ended {
				break
			}
			select {
			case ended = <-done:
				if !ended {
					return 0, errors.New("the job ended")
				}
			default:
			}
			continue
		}
		if err != nil {
			return 0, err
		}
		if taken := (*bpf.PythonWalkPythonTaken)(unsafe.Pointer(&record.RawSample[0])); int(taken.Stack.Count) == frames {
			times = append(times, float64(taken.WalkNs))
		}
	}
	if len(times) < 100 {
		return 0, fmt.Errorf("%d stacks of %d frames", len(times), frames)
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

func (t *walkTimer) close() {
	if t.stdin != nil {
		t.stdin.Close()
	}
	if t.cmd.Process != nil {
		_ = t.cmd.Wait()
	}
	if t.probe != nil {
		t.probe.Close()
	}
	if t.ring != nil {
		t.ring.Close()
	}
	t.objects.Close()
}

func (r *Results) WalkingPython(p *figure.Page) {
	if len(r.pythonWalks) == 0 {
		return
	}
	p.Line("## A Python stack\n")
	p.Line("The walk in the kernel, from the thread pointer to the outermost frame, memory warm; medians. The target is at most 250 " +
		"ns a frame.\n")
	p.Table("CPython", "to the first frame", "a frame", "a frame, with a C function between every two", fmt.Sprintf("%d frames", fortyFrames))
	for _, w := range r.pythonWalks {
		p.Row(w.version, fmt.Sprintf("%.0f ns", w.start), fmt.Sprintf("%.0f ns", w.frame), fmt.Sprintf("%.0f ns", w.runs), fmt.Sprintf("%.1f µs",
			w.forty/1e3))
	}
	p.Line("")
}
