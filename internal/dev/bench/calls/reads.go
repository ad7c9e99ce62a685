package calls

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/loop"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/paired"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/recording"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// What a system call that reads costs the job more, and how near the recorded time is to
// what the job measures itself.

const (
	manyReads  = 200_000 // of one byte, in a turn
	fileReads  = 400     // of fileBytes, likewise
	fileBytes  = 1 << 20
	readRounds = 5
	readTurns  = 3 // the fastest counts
)

// readsResult are the times of reads.
type readsResult struct {
	bare  figure.Spread // ns a read with nothing attached
	bytes float64       // a row of io, on disk
	costs []*readCost
	files []readFile
	rows  []event.IO // of a file
}

// readCost is what a read takes longer under one recording, ns, by round.
type readCost struct {
	name    string
	options *tracer.Options // nil: nothing is recorded
	more    []float64
}

// readFile is a loader's reads of one file system.
type readFile struct {
	system           string
	job, recorded    float64 // ns a read; the job's own clock
	calls, bytes     int64
	wantCalls, wants int64
}

func (r *Results) MeasureReads() error {
	dir, err := os.MkdirTemp("", "ebpfprof-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "reads")
	if out, err := exec.Command("cc", "-O2", "-o", program, filepath.Join("internal", "dev", "bench", "jobs",
		"reads.c")).CombinedOutput(); err != nil {
		return fmt.Errorf("building the job that reads: %w\n%s", err, out)
	}
	result := &readsResult{}
	if err := result.price(program); err != nil {
		return err
	}
	memory, err := os.MkdirTemp("/dev/shm", "ebpfprof-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(memory)
	for _, where := range []string{memory, dir} {
		if err := result.load(program, filepath.Join(where, "file")); err != nil {
			return err
		}
	}
	result.bytes, err = bytesOfRows(result.rows)
	r.reads = result
	return err
}

// startReads starts the job that reads at real-time priority: where others want its core, it
// would be taken off it on its way back from the kernel, which is in its own time alone.
func startReads(program string, arguments ...string) (*loop.Loop, error) {
	return loop.StartTold(append([]string{"chrt", "-f", "1", program}, arguments...)...)
}

// price has reads of one byte under recordings in turn, each between two without.
func (r *readsResult) price(program string) error {
	j, err := startReads(program, "/dev/zero", "1", strconv.Itoa(manyReads), "cpu")
	if err != nil {
		return err
	}
	defer j.End()
	options := func(change func(*tracer.Options)) *tracer.Options {
		o := &tracer.Options{PIDs: []int{j.Process.Pid}, Level: tracer.LevelSamples, Budget: tracer.Unlimited}
		change(o)
		return o
	}
	r.costs = []*readCost{
		{name: paired.AA},
		{name: "waits alone: `--no-io`", options: options(func(o *tracer.Options) { o.NoIO, o.OffCPU = true, time.Millisecond })},
		{name: "reads and writes alone: `--off-cpu-threshold 0`", options: options(func(o *tracer.Options) {})},
		{name: "both, the default", options: options(func(o *tracer.Options) { o.OffCPU = time.Millisecond })},
		{name: "both, with `--paths`", options: options(func(o *tracer.Options) { o.OffCPU, o.Paths = time.Millisecond, true })},
	}
	before, err := fastestTurn(j)
	if err != nil {
		return err
	}
	for range readRounds {
		for _, c := range r.costs {
			on := 0.0
			run := func() (err error) { on, err = fastestTurn(j); return err }
			if c.options == nil {
				err = run()
			} else {
				_, err = recording.Traced(*c.options, 100*time.Millisecond, run)
			}
			if err != nil {
				return err
			}
			after, err := fastestTurn(j)
			if err != nil {
				return err
			}
			r.bare.Add(after)
			c.more = append(c.more, on-(before+after)/2)
			before = after
		}
	}
	for _, c := range r.costs {
		setup.Say("  %s: %+.0f ns a read", c.name, figure.Median(c.more))
	}
	return nil
}

// fastest is ns a read, of the turn that the least was in the way of.
func fastestTurn(j *loop.Loop) (float64, error) {
	var turns []float64
	for range readTurns {
		ns, err := j.Once()
		if err != nil {
			return 0, err
		}
		turns = append(turns, ns)
	}
	return figure.Fastest(turns), nil
}

// ioRows keeps the rows of io.
type ioRows struct {
	*recording.Scratch
	rows []event.IO
}

// Write implements event.Sink.
func (s *ioRows) Write(b *event.Batch) error {
	s.rows = append(s.rows, b.IO...)
	return s.Scratch.Write(b)
}

// load reads a file as a loader does, and compares what is recorded with what it says.
func (r *readsResult) load(program, path string) error {
	if err := os.WriteFile(path, make([]byte, 64*fileBytes), 0o600); err != nil {
		return err
	}
	j, err := startReads(program, path, strconv.Itoa(fileBytes), strconv.Itoa(fileReads), "each")
	if err != nil {
		return err
	}
	defer j.End()
	kept, err := recording.NewScratch()
	if err != nil {
		return err
	}
	sink := &ioRows{Scratch: kept}
	defer kept.Remove()
	f := readFile{}
	var turns []float64
	_, err = recording.TracedInto(sink, tracer.Options{PIDs: []int{j.Process.Pid}, Level: tracer.LevelSamples, OffCPU: time.Millisecond,
		Budget: tracer.Unlimited},
		100*time.Millisecond, func() error {
			for range readTurns {
				ns, err := j.Once()
				if err != nil {
					return err
				}
				turns = append(turns, ns)
			}
			return nil
		})
	if err != nil {
		return err
	}
	var ns int64
	for _, row := range sink.rows {
		if row.Operation == event.IORead && row.Kind == event.IOFile {
			f.system = row.FileSystem
			f.calls, f.bytes, ns = f.calls+row.Calls, f.bytes+row.Bytes, ns+row.DurationNS
		}
	}
	if f.calls == 0 {
		return errors.New("no read of the file was recorded")
	}
	f.wantCalls = readTurns * fileReads
	// Of each 65 reads the last is at the end of the file.
	f.wants = readTurns * (fileReads - fileReads/65) * fileBytes
	for _, turn := range turns {
		f.job += turn / readTurns
	}
	f.recorded = float64(ns) / float64(f.calls)
	r.rows = sink.rows
	setup.Say("  %s: %.0f ns recorded, %.0f by the job", f.system, f.recorded, f.job)
	r.files = append(r.files, f)
	return nil
}

// bytesOfRows is how many bytes a row takes on disk in a recording of hours: so many like
// some that were recorded, a second apart, with other figures.
func bytesOfRows(like []event.IO) (float64, error) {
	if len(like) == 0 {
		return 0, errors.New("no read has a row")
	}
	to, err := recording.NewScratch()
	if err != nil {
		return 0, err
	}
	defer to.Remove()
	const count = 100_000
	random := rand.New(rand.NewPCG(1, 2))
	rows := make([]event.IO, 0, count)
	for i := range count {
		row := like[i%len(like)]
		later := int64(i/len(like))*int64(time.Second) + random.Int64N(int64(time.Millisecond))
		row.TSNS, row.EndNS = row.TSNS+later, row.EndNS+later
		row.Calls += random.Int64N(1 + row.Calls/4)
		row.Bytes += random.Int64N(1 + row.Bytes/4)
		row.DurationNS += random.Int64N(1 + row.DurationNS/4)
		rows = append(rows, row)
	}
	if err := errors.Join(to.Write(&event.Batch{IO: rows}), to.Close()); err != nil {
		return 0, err
	}
	return float64(recording.TableBytes(filepath.Join(to.Dir, "dataset", "io"))) / count, nil
}

func (r *Results) ReadTargets(p *figure.Page) {
	if r.reads == nil {
		return
	}
	for _, f := range r.reads.files {
		off := f.recorded/f.job - 1
		p.Row("reads of 1 MiB: time within 2 % of the job's own count, bytes exactly", f.system,
			fmt.Sprintf("%+.2f %%, %d of %d bytes", 100*off, f.bytes, f.wants), figure.Verdict(off > -0.02 && off < 0.02 && f.bytes == f.wants &&
				f.calls == f.wantCalls))
	}
}

const readsText = `A C program that reads one byte of ` + "`/dev/zero`" +
	` in a loop (internal/dev/bench/jobs/reads.c), at real-time priority, by its own thread's CPU time; a recording is opened for each window of %d reads, between two without, %d rounds, and of each window the fastest of %d turns counts. A read takes %.0f ns without. The kernel runs the programs at every system call of every process of the machine as long as one recording measures reads or waits; of processes that are not traced they end at once.`

func (r *Results) ReadsAndWrites(p *figure.Page) {
	if r.reads == nil {
		return
	}
	p.Line("## Reads and writes\n")
	p.Line(readsText+"\n", readTurns*manyReads, readRounds, readTurns, figure.Fastest(r.reads.bare.Values))
	p.Table("what", "ns more a read (95 %)")
	for _, c := range r.reads.costs {
		e := figure.EstimateOf(c.more)
		p.Row(c.name, fmt.Sprintf("%+.0f (%+.0f … %+.0f)", e.Median, e.Low, e.High))
	}
	p.Line("\nA row of `io` is a thread, an operation and a mount, at most each second and each step: %d bytes in the ring and %.1f on disk "+
		"(of 100,000 like those of the loader below), whatever the number of calls; with `--paths` also each file, and %d bytes for its path "+
		"whenever it was not among the thread's last 15. `--no-io` leaves it out.\n",
		unsafe.Sizeof(bpf.SampleIoRecord{}), r.reads.bytes, unsafe.Sizeof(bpf.SampleIoPathRecord{}))
	p.Line("A loader that reads a file of 64 MiB in pieces of 1 MiB from the page cache, at real-time priority, and takes the time before " +
		"and after each read itself:\n")
	p.Table("file system", "reads", "recorded", "bytes recorded", "µs a read by the job", "recorded, µs")
	for _, f := range r.reads.files {
		p.Row(f.system, fmt.Sprint(f.wantCalls), fmt.Sprint(f.calls), fmt.Sprintf("%d of %d", f.bytes, f.wants), fmt.Sprintf("%.2f", f.job/1e3),
			fmt.Sprintf("%.2f (%+.2f %%)", f.recorded/1e3, 100*(f.recorded/f.job-1)))
	}
	p.Line("")
}
