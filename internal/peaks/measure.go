package peaks

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Measured is what this machine can do, by trying.
type Measured struct {
	Processor string `json:"processor"`
	Threads   int    `json:"threads"`
	// Per second: single-precision operations of one thread and of all, and bytes
	// that all threads read and write in memory.
	FLOPsOne float64 `json:"fp32_flops_one_thread"`
	FLOPs    float64 `json:"fp32_flops"`
	Bytes    float64 `json:"memory_bytes"`
	With     string  `json:"measured_with"`
	AtNS     int64   `json:"measured_ns"`
}

// Ridge is from which arithmetic intensity on the machine is bound by its operations.
func (m Measured) Ridge() float64 { return m.FLOPs / math.Max(m.Bytes, 1) }

// Peak of the processor, as of a device: double precision has half the operations.
func (m Measured) Peak() Peak {
	return Peak{Device: m.Processor, FLOPs: map[string]float64{"fp32": m.FLOPs, "fp64": m.FLOPs / 2}, Bytes: m.Bytes,
		Note: "measured here with " + m.With}
}

const (
	windows  = 5 // the best of which counts: what else runs makes the others worse
	window   = 100 * time.Millisecond
	copySize = 64 << 20 // larger than caches
)

// Measure takes about two seconds and all threads that it is given.
func Measure(ctx context.Context, processor string, threads int) (Measured, error) {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	m := Measured{Processor: processor, Threads: threads, AtNS: time.Now().UnixNano()}
	loop, operations, with := arithmetic()
	m.With = with
	const rounds = 20_000
	compute := func() float64 { loop(rounds); return rounds * operations }
	m.FLOPsOne = best(ctx, 1, func(int) func() float64 { return compute })
	m.FLOPs = best(ctx, threads, func(int) func() float64 { return compute })
	m.Bytes = best(ctx, threads, func(int) func() float64 {
		from, to := make([]byte, copySize), make([]byte, copySize)
		for i := 0; i < copySize; i += 4096 { // so that each has pages of its own
			from[i], to[i] = 1, 1
		}
		return func() float64 { copy(to, from); return 2 * copySize }
	})
	return m, ctx.Err()
}

// best is the most work a second of the windows, all threads together.
func best(ctx context.Context, threads int, prepare func(thread int) func() float64) (most float64) {
	work := make([]func() float64, threads)
	for i := range work {
		work[i] = prepare(i)
	}
	for range windows {
		if ctx.Err() != nil {
			return most
		}
		var all sync.WaitGroup
		var stop atomic.Bool
		sums := make([]float64, threads)
		begin := time.Now()
		for i := range threads {
			all.Go(func() {
				for !stop.Load() {
					sums[i] += work[i]()
				}
			})
		}
		time.Sleep(window)
		stop.Store(true)
		all.Wait()
		took := time.Since(begin).Seconds()
		sum := 0.0
		for _, s := range sums {
			sum += s
		}
		most = max(most, sum/took)
	}
	return most
}

const plainOperations = 16

// plainLoop does plainOperations a round on numbers that do not depend on one another.
func plainLoop(n int) {
	var a [8]float32
	const x = float32(1)
	for range n {
		for i := range a {
			a[i] += x * x
		}
	}
	runtime.KeepAlive(&a)
}
