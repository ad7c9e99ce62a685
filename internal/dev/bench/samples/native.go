package samples

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/paired"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/unwinding"
)

// nativeWalk is what walking a PyTorch's native frames costs.
type nativeWalk struct {
	python setup.Interpreter
	cold   time.Duration // from the first look at the process until its last table is ready
	cached time.Duration
	tables unwindTables
	torch  unwinding.FileStatus // libtorch_cpu, compiled
	again  time.Duration        // libtorch_cpu, from the cache
	frame  []float64            // ns a frame, one value a stack
	forty  []float64            // ns of stacks of about 40 frames
	ends   map[string]int       // how the walks ended
}

// unwindTables are those of a whole process.
type unwindTables struct{ files, rows, bytes, allocated int } // allocated with all maps around the tables

// MeasureNativeWalk makes the tables of a training job, twice, and takes its
// stack two thousand times a second.
func (r *Results) MeasureNativeWalk(s setup.Settings, python setup.Interpreter) error {
	if err := rlimit.RemoveMemlock(); err != nil {
		return err
	}
	j, err := paired.Start(python, "transformer.py")
	if err != nil {
		return err
	}
	defer j.Kill()
	p, err := process.Open(j.Pid)
	if err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "ebpfprof-bench-unwind-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	w := &nativeWalk{python: python, ends: map[string]int{}}
	cold, err := w.load(p, directory)
	if err != nil {
		return err
	}
	w.cold, w.torch = cold.took, cold.torch
	cold.close()
	cached, err := w.load(p, directory)
	if err != nil {
		return err
	}
	defer cached.close()
	w.cached, w.again, w.tables = cached.took, cached.torch.Took, cached.tables
	if err := w.sample(cached.maps, 4*s.Window); err != nil {
		return err
	}
	if _, err := j.Stop(); err != nil {
		return err
	}
	r.nativeWalks = append(r.nativeWalks, w)
	setup.Say("  PyTorch %s: %.0f ns a frame, %.1f µs for 40 frames; libtorch_cpu %v, from the cache %v", python.Name, figure.Median(w.frame),
		figure.Median(w.forty)/1e3, w.torch.Took.Round(time.Millisecond), w.again.Round(time.Millisecond))
	return nil
}

// loadedTables are a process's tables in the kernel.
type loadedTables struct {
	maps     *unwinding.Maps
	unwinder *unwinding.Unwinder
	took     time.Duration
	torch    unwinding.FileStatus
	tables   unwindTables
}

func (l *loadedTables) close() {
	l.unwinder.Close()
	l.maps.Close()
}

func (w *nativeWalk) load(p *process.Process, cache string) (*loadedTables, error) {
	maps, err := unwinding.NewMaps(true)
	if err != nil {
		return nil, err
	}
	l := &loadedTables{maps: maps, unwinder: unwinding.New(maps, unwinding.Options{Cache: unwind.Cache{Directory: cache}})}
	began := time.Now()
	if err := l.unwinder.AddProcess(p); err != nil {
		l.close()
		return nil, err
	}
	l.unwinder.Wait()
	l.took = time.Since(began)
	status, _ := l.unwinder.Status(p.PID)
	for _, f := range status.Files {
		if f.State == unwinding.Ready {
			l.tables.files++
			l.tables.rows += f.Rows
			l.tables.bytes += f.Bytes
		}
		if strings.HasPrefix(filepath.Base(f.Path), "libtorch_cpu.so") {
			l.torch = f
		}
	}
	l.tables.allocated, _ = l.unwinder.Memory()
	l.tables.allocated += maps.Memory()
	return l, nil
}

// sample walks whatever the job's core runs of the job at a software clock's ticks.
func (w *nativeWalk) sample(maps *unwinding.Maps, length time.Duration) error {
	spec, err := bpf.LoadNativeWalk()
	if err != nil {
		return err
	}
	var objects bpf.NativeWalkObjects
	if err := spec.LoadAndAssign(&objects, &ebpf.CollectionOptions{MapReplacements: maps.Replacements(spec)}); err != nil {
		return err
	}
	defer objects.Close()
	ring, err := ringbuf.NewReader(objects.NativeTakenRing)
	if err != nil {
		return err
	}
	defer ring.Close()
	attributes := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: unix.PERF_ATTR_SIZE_VER1,
		Sample: uint64(500 * time.Microsecond),
	}
	fd, err := unix.PerfEventOpen(&attributes, -1, setup.JobCore, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("opening the clock: %w", err)
	}
	defer unix.Close(fd)
	clock, err := link.AttachRawLink(link.RawLinkOptions{Target: fd, Program: objects.NativeAtTick, Attach: ebpf.AttachPerfEvent})
	if err != nil {
		return fmt.Errorf("attaching to the clock: %w", err)
	}
	defer clock.Close()
	ring.SetDeadline(time.Now().Add(length))
	var record ringbuf.Record
	for {
		err := ring.ReadInto(&record)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return err
		}
		w.add((*bpf.NativeWalkNativeTaken)(unsafe.Pointer(&record.RawSample[0])))
	}
	if len(w.frame) < 100 {
		return fmt.Errorf("%d stacks", len(w.frame))
	}
	return nil
}

func (w *nativeWalk) add(taken *bpf.NativeWalkNativeTaken) {
	w.ends[unwinding.Outcome(taken.Stack.Outcome).String()]++
	count := taken.Stack.Count
	if count < 10 {
		return // the start would count for too much
	}
	w.frame = append(w.frame, float64(taken.WalkNs)/float64(count))
	if count >= 36 && count <= 44 {
		w.forty = append(w.forty, float64(taken.WalkNs)*40/float64(count))
	}
}

func (w *nativeWalk) complete() (ended, all int) {
	for name, n := range w.ends {
		all += n
		if name == "native_end" {
			ended = n
		}
	}
	return ended, all
}

func (r *Results) NativeTargets(p *figure.Page) {
	for _, w := range r.nativeWalks {
		row := func(name string, measured string, holds bool) {
			p.Row(name, w.python.Name, measured, figure.Verdict(holds))
		}
		frame, forty := figure.Median(w.frame), figure.Median(w.forty)
		row("a native frame: ≤ 300 ns", fmt.Sprintf("%.0f ns", frame), frame <= 300)
		row("a stack of 40 frames: ≤ 15 µs", fmt.Sprintf("%.1f µs", forty/1e3), forty <= 15e3)
		ended, all := w.complete()
		row("samples down to the thread's start: ≥ 99 %", fmt.Sprintf("%.2f %%", 100*float64(ended)/float64(all)), ended*100 >= all*99)
		row("unwind tables of the process, kernel memory: ≤ 20 MB", figure.Megabytes(w.tables.allocated), w.tables.allocated <= 20e6)
		row("libtorch_cpu's table: ≤ 1.5 s", figure.Milliseconds(w.torch.Took), w.torch.Took <= 1500*time.Millisecond)
		row("libtorch_cpu's table from the cache: ≤ 50 ms", figure.Milliseconds(w.again), w.again <= 50*time.Millisecond)
		bytes := float64(w.torch.Bytes) / float64(w.torch.Rows)
		row("libtorch_cpu's table: ≤ 5 bytes a row", fmt.Sprintf("%.2f B", bytes), bytes <= 5)
	}
}

func (r *Results) WalkingNative(p *figure.Page) {
	if len(r.nativeWalks) == 0 {
		return
	}
	p.Line("## A native stack\n")
	p.Line("A transformer's training steps, walked by unwind tables two thousand times a second at a software clock's ticks: at arbitrary " +
		"places, so that the tables' leaves are not always in the caches. Rules that were found once are cached. A stack's whole walk over its " +
		"frames; medians. The target is at most 300 ns a frame.\n")
	p.Table("PyTorch", "a frame", "40 frames", "stacks", "down to the thread's start")
	for _, w := range r.nativeWalks {
		ended, all := w.complete()
		p.Row(w.python.Name, fmt.Sprintf("%.0f ns", figure.Median(w.frame)), fmt.Sprintf("%.1f µs", figure.Median(w.forty)/1e3), fmt.Sprint(all),
			fmt.Sprintf("%.2f %%", 100*float64(ended)/float64(all)))
	}
	p.Line("\nIts tables, made on one core, and from the cache on disk; the targets are 1.5 s and 50 ms for libtorch_cpu, 5 bytes a row, " +
		"and 20 MB for all of a process.\n")
	p.Table("PyTorch", "libtorch_cpu: rows", "compiled", "from the cache", "bytes a row", "the process: files", "rows", "tables",
		"kernel memory", "compiled", "from the cache")
	for _, w := range r.nativeWalks {
		p.Row(w.python.Name, fmt.Sprint(w.torch.Rows), figure.Milliseconds(w.torch.Took), figure.Milliseconds(w.again),
			fmt.Sprintf("%.2f", float64(w.torch.Bytes)/float64(w.torch.Rows)),
			fmt.Sprint(w.tables.files), fmt.Sprint(w.tables.rows), figure.Megabytes(w.tables.bytes), figure.Megabytes(w.tables.allocated),
			figure.Milliseconds(w.cold), figure.Milliseconds(w.cached))
	}
	p.Line("")
}
