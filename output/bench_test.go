package output

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// imitation is what a training loop looks like to the tracer: two threads, 50
// operators nested up to three deep, spans that arrive when they end, ids that
// count from 2^40 times the thread's number.
type imitation struct {
	random *rand.Rand
	calls  []*event.Call
	now    int64
	id     [2]int64
	seq    int64
}

func newImitation() *imitation {
	im := &imitation{random: rand.New(rand.NewPCG(1, 2)), now: 1_790_000_000_000_000_000}
	for i := range 50 {
		im.calls = append(im.calls, &event.Call{Layer: "op", Category: "forward", Name: fmt.Sprintf("aten::operator_%d", i)})
	}
	return im
}

// spans appends one operator with its children, children first.
func (im *imitation) spans(dst []event.Span, tid int32, parent int64, depth int) []event.Span {
	thread := int64(tid & 1)
	im.id[thread]++
	id := (thread+1)<<40 | im.id[thread]
	im.now += 2000 + int64(im.random.IntN(4000))
	s := event.Span{
		ID: id, ParentID: parent, StartNS: im.now, PID: 4242, TID: tid,
		Call: im.calls[im.random.IntN(len(im.calls))], End: event.EndExitSite, Status: event.StatusOK,
		Weight: 1, SequenceNumber: -1,
	}
	if im.random.IntN(3) == 0 {
		im.seq++
		s.SequenceNumber = im.seq
	}
	for range im.random.IntN(3 - depth) {
		dst = im.spans(dst, tid, s.ID, depth+1)
	}
	s.DurationNS = im.now - s.StartNS + int64(math.Exp(9+im.random.NormFloat64()))
	return append(dst, s)
}

// batches are what a ring hands over: a few thousand spans, of one thread until
// the other one's turn comes (forward, backward), or of both at once.
func (im *imitation) batches(n int, atOnce bool) (batches [][]event.Span) {
	for i := 0; n > 0; i++ {
		var batch []event.Span
		for len(batch) < 2000 {
			tid := int32(4242 + i%2)
			if atOnce {
				tid = 4242 + im.random.Int32N(2)
			}
			batch = im.spans(batch, tid, 0, 0)
		}
		batches = append(batches, batch)
		n -= len(batch)
	}
	return batches
}

// processCPU is the CPU time of the whole process: the writer's goroutine and
// the garbage collector count.
func processCPU(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func tableBytes(b *testing.B, dir string) (bytes int64) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			b.Fatal(err)
		}
		bytes += info.Size()
	}
	return bytes
}

// BenchmarkSpans is the budget of a million spans a second on one core, of
// which writing gets 550 ns, at 20 bytes a span.
func BenchmarkSpans(b *testing.B) {
	for _, c := range []struct {
		name    string
		details int // one span in so many has a Detail
		atOnce  bool
	}{{"operators", 0, false}, {"threads at once", 0, true}, {"launch in four", 4, false}} {
		b.Run(c.name, func(b *testing.B) {
			batches := newImitation().batches(500_000, c.atOnce)
			if c.details > 0 {
				addDetails(batches, c.details)
			}
			benchmarkSpans(b, batches)
		})
	}
}

func addDetails(batches [][]event.Span, every int) {
	n := 0
	for _, batch := range batches {
		for i := range batch {
			if n++; n%every == 0 {
				device, stream, correlation := int32(0), int64(7), int64(n)
				batch[i].Detail = &event.Detail{
					DeviceID: &device, Stream: &stream, CorrelationID: &correlation,
					Grid: &[3]int64{int64(n % 100), 1, 1}, Block: &[3]int64{256, 1, 1},
				}
			}
		}
	}
}

func benchmarkSpans(b *testing.B, batches [][]event.Span) {
	dir := b.TempDir()
	d, err := Create(filepath.Join(dir, "dataset"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := d.Session(event.Recording{ID: "bench", StartedNS: 1}); err != nil {
		b.Fatal(err)
	}
	var spans, next int
	var before, after runtime.MemStats
	var peak uint64
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	cpu := processCPU(b)
	for spans < b.N {
		if err := d.Write(&event.Batch{Spans: batches[next%len(batches)]}); err != nil {
			b.Fatal(err)
		}
		spans += len(batches[next%len(batches)])
		if next++; next%64 == 0 {
			runtime.ReadMemStats(&after)
			peak = max(peak, after.HeapInuse)
		}
	}
	if err := d.Close(); err != nil {
		b.Fatal(err)
	}
	cpu = processCPU(b) - cpu
	b.StopTimer()
	b.ReportMetric(float64(cpu.Nanoseconds())/float64(spans), "cpu-ns/span")
	b.ReportMetric(float64(tableBytes(b, filepath.Join(dir, "dataset", "span")))/float64(spans), "B/span")
	b.ReportMetric(float64(peak-min(peak, before.HeapInuse))/1e6, "heap-MB")
}

// BenchmarkMemory is half a million allocator events a second at the worst.
func BenchmarkMemory(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	batch := make([]event.Memory, 4096)
	sizes := make([]int64, 64)
	for i := range sizes {
		sizes[i] = int64(random.IntN(1 << 24))
	}
	d, err := Create(filepath.Join(b.TempDir(), "dataset"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := d.Session(event.Recording{ID: "bench", StartedNS: 1}); err != nil {
		b.Fatal(err)
	}
	now := int64(1_790_000_000_000_000_000)
	b.ResetTimer()
	cpu := processCPU(b)
	events := 0
	for events < b.N {
		for i := range batch {
			now += int64(random.IntN(4000))
			batch[i] = event.Memory{
				TSNS: now, PID: 4242, TID: 4242, Space: "host", Level: "allocator", Action: []string{"alloc", "free"}[i%2],
				Address: 0x7f00_0000_0000 + int64(random.IntN(3000))*4096, Bytes: &sizes[random.IntN(len(sizes))],
				SpanID: now / 20_000, Weight: 1,
			}
		}
		if err := d.Write(&event.Batch{Memory: batch}); err != nil {
			b.Fatal(err)
		}
		events += len(batch)
	}
	if err := d.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64((processCPU(b)-cpu).Nanoseconds())/float64(events), "cpu-ns/event")
	b.ReportMetric(float64(tableBytes(b, filepath.Join(d.Dir(), "memory")))/float64(events), "B/event")
}

// BenchmarkRotate is what it takes until a row in each of eight tables is on the disk and
// can be seen.
func BenchmarkRotate(b *testing.B) {
	d := begin(b, Options{RotateEvery: time.Hour})
	for i := int64(1); b.Loop(); i++ {
		ended := i + 1
		err := errors.Join(
			d.Write(&event.Batch{Spans: someSpans(1)}), d.Write(&event.Batch{Samples: []event.Sample{{TSNS: i}}}),
			d.Write(&event.Batch{Stacks: []event.Stack{{ID: i}}}), d.Write(&event.Batch{Counters: []event.Counter{{TSNS: i}}}),
			d.Write(&event.Batch{Warnings: []event.Warning{{TSNS: i}}}),
			d.Write(&event.Batch{Libraries: []event.Library{{PID: 1, StartAddress: i}}}),
			d.Write(&event.Batch{Processes: []event.Process{{ID: i, PID: int32(i), StartedNS: i, EndedNS: &ended}}}),
			d.Write(&event.Batch{Threads: []event.Thread{{PID: 1, TID: int32(i), StartedNS: &i, EndedNS: &ended}}}),
		)
		if err = errors.Join(err, d.Rotate()); err != nil {
			b.Fatal(err)
		}
	}
}
