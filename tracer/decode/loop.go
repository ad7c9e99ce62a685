package decode

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/ebpfprof/ebpfprof/tracer/beat"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// Rings are what a Decoder reads.
type Rings struct {
	Calls     *kernel.CallRing
	CallBytes int             // the size of that
	Samples   *ringbuf.Reader // nil: nothing takes stacks
	// Patient lets few calls wait for longer: nobody looks at them within milliseconds.
	Patient bool
	// Slicing reports, to a patient reader, whether a slice is on, which may bring many at once.
	Slicing func() bool
	// Thrifty has calls wait for longer where they do not fill their ring, once it says so:
	// reading them takes too much of the job's CPUs. nil: never.
	Thrifty *atomic.Bool
}

// Pending is how many bytes wait in each ring.
type Pending struct{ Calls, Samples int }

// Most is the larger of both, of each ring.
func (p Pending) Most(q Pending) Pending {
	return Pending{max(p.Calls, q.Calls), max(p.Samples, q.Samples)}
}

// pending is asked while nobody closes the rings: it reads memory that they map.
func (r *Rings) pending() (p Pending) {
	p.Calls = r.Calls.AvailableBytes()
	if r.Samples != nil {
		p.Samples = r.Samples.AvailableBytes()
	}
	return p
}

// Run reads the rings until stop is closed and they are empty. After each look it calls
// looked with what it found waiting.
func (d *Decoder) Run(rings Rings, stop <-chan struct{}, looked func(Pending)) error {
	if rings.Samples != nil { // no interface around a nil
		d.samples.ring = rings.Samples
	}
	var record ringbuf.Record
	wait := pollWait
	for {
		stopping := false
		select {
		case <-stop:
			stopping = true
		default:
		}
		d.Serve()
		if !stopping {
			rings.Calls.Wakeup.Wait(beat.Of(wait))
		}
		waiting := rings.pending()
		n, err := d.poll(rings.Calls.Reader, &record)
		if err == nil {
			err = d.Rows.Out.Failed()
		}
		if err != nil {
			return err
		}
		looked(waiting)
		if stopping && n == 0 {
			return nil
		}
		found := look{calls: n > 0, samples: d.samples.any, behind: d.samples.behind}
		found.few = rings.patience(waiting)
		wait = nextWait(wait, found, rings.CallBytes)
	}
}

const (
	// pollWait is how long the reader sleeps when the ring is empty. The programs do not
	// wake it: wake-ups would cost the job more than the records.
	pollWait = 10 * time.Millisecond
	// idleWait is how long that becomes while the job makes no calls: for samples
	// alone it is often enough. Each look wakes the Go scheduler, which takes longer
	// over it than the look itself.
	idleWait = 100 * time.Millisecond
	// restWait is what it grows to where no sample comes either: a job that sleeps.
	restWait = 250 * time.Millisecond
	// A smaller ring than idleRing, bytes, could be full after so long.
	idleRing     = 16 << 20
	tinyIdleWait = 40 * time.Millisecond
	// patientWait is how long few calls wait for a patient reader: nobody looks at what it
	// reads more often.
	patientWait = 200 * time.Millisecond
	// Calls are few where they fill less than this part of their ring between two looks: in the
	// longest wait that a patient reader gives them they would fill a third.
	fewCalls = 64
	// A thrifty reader lets them wait where they fill less than this part of it.
	someCalls = 16
)

// look is what was found at a look into the rings.
type look struct {
	calls, samples bool
	behind         bool // so many samples that the next look comes soon
	// few is how late the next look of a patient reader may come where there are few calls
	// or none; 0 where there are many, or where it is not patient.
	few time.Duration
}

// patience is how late the next look may come after one that found so much waiting; 0: as
// soon as there is something.
func (r *Rings) patience(waiting Pending) (few time.Duration) {
	if r.Patient && waiting.Calls < r.CallBytes/fewCalls {
		if few = patientWait; r.Slicing() {
			few = tinyIdleWait
		}
	}
	if r.Thrifty != nil && r.Thrifty.Load() && waiting.Calls < r.CallBytes/someCalls {
		few = max(few, tinyIdleWait)
	}
	return few
}

// nextWait is how long to sleep after a look that followed a sleep of wait.
func nextWait(wait time.Duration, found look, callBytes int) time.Duration {
	switch {
	case found.few > 0 && !found.behind && (found.calls || callBytes < idleRing):
		return min(2*wait, found.few)
	case found.calls || found.behind:
		return pollWait
	case callBytes < idleRing:
		return min(2*wait, tinyIdleWait)
	case found.samples || wait < idleWait:
		return min(2*wait, idleWait)
	}
	return min(wait+wait/32, restWait)
}

// pollLook is how many records are read between two looks at the clock.
const pollLook = 64

// poll reads what is in the ring of calls, which does not wait, and hands it to the sink.
// It reports how many records it read.
func (d *Decoder) poll(ring *ringbuf.Reader, record *ringbuf.Record) (int, error) {
	deadline := time.Now().Add(pollWait)
	n := 0
	for {
		// A job that never pauses never lets the ring run empty.
		if n%pollLook == pollLook-1 && time.Now().After(deadline) {
			return n, d.Flush()
		}
		err := ring.ReadInto(record)
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ringbuf.ErrFlushed) {
			d.drained()
			err := d.Flush()
			d.Departed.bothRead()
			return n, err
		}
		if err != nil {
			return n, fmt.Errorf("reading the ring buffer: %w", err)
		}
		n++
		d.calls.record(record.RawSample)
		if d.Rows.Batch.Full() {
			if err := d.Flush(); err != nil {
				return n, err
			}
		}
	}
}
