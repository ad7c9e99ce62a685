package worker

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/sinks"
	"github.com/ebpfprof/ebpfprof/internal/agent/spool"
	"github.com/ebpfprof/ebpfprof/internal/exchange/otlp"
	"github.com/ebpfprof/ebpfprof/internal/fleet/live"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/trigger"
)

// What becomes of the events of a session. It knows no session and reads no clock, so that
// a test replays a day of them.

// watching is what is kept of a job at level anchor until it is sent.
type watching struct {
	*worker
	collector *pattern.Collector
	evidence  *live.Evidence // of a hang
	failures  *live.Failures
	newest    *live.Newest
	failing   *untold
	guarded   *sinks.Locked // the session's sink
	steps     []pattern.Step
}

func (w *worker) watching() *watching {
	k := &watching{worker: w, collector: pattern.New(frequency), evidence: live.NewEvidence(w.host)}
	k.collector.Waited = w.steps.Waited
	k.failures, k.newest = live.NewFailures(k.evidence), live.NewNewest(k.evidence)
	k.guarded = &sinks.Locked{To: sinks.Tee{w.steps, w.config.Sink(k.collector), w.config.Sink(sinks.Tee{k.evidence, k.failures, k.newest})}}
	return k
}

// look takes the steps that have ended, and says for what reason a window is due; "" is none.
// lost are the rows that the session has lost so far, by reason.
func (k *watching) look(ctx context.Context, now time.Time, lost map[string]uint64) (reason string) {
	k.guarded.Lock()
	defer k.guarded.Unlock()
	w := k.worker
	k.evidence.Lose(now.UnixNano(), lost)
	w.steps.Wait(k.evidence.Standing())
	w.steps.Check(now.UnixNano())
	w.blockUnpaced(now, k.evidence.Waiting())
	done, degraded := w.steps.Take(false)
	_, w.status.Sequence = w.steps.Learnt()
	w.status.Dropped = w.dropped + w.steps.Ignored()
	var last Lasting
	last.Slow, last.Blocked = w.steps.Now()
	if last != w.status.Now { // who watches need not wait for the next flush
		w.status.Now = last
		w.say(w.status.State, "")
	}
	for _, d := range degraded {
		reason = cmp.Or(w.degraded(d), reason)
	}
	k.steps = w.keep(k.steps, done)
	return cmp.Or(w.judge(ctx, now, last.Blocked > 0, k.evidence), reason)
}

// conclude gives the verdict of a hang that has none yet.
func (k *watching) conclude(ctx context.Context, now time.Time) {
	k.guarded.Lock()
	defer k.guarded.Unlock()
	if k.blocked != nil {
		k.worker.conclude(ctx, now, k.evidence)
	}
}

// send writes what was seen since the last time for the store.
func (k *watching) send(ctx context.Context) {
	k.guarded.Lock()
	defer k.guarded.Unlock()
	k.worker.send(ctx, k.collector, k.steps, 0)
	k.steps = nil
}

func (k *watching) blind(watched time.Duration) string {
	k.guarded.Lock()
	defer k.guarded.Unlock()
	return k.worker.blind(watched)
}

// windowed is what is kept of a job in a window.
type windowed struct {
	*worker
	collector *pattern.Collector
	steps     *live.Steps
	samples   *otlp.Window // for a collector; nil without one
	failures  *live.Failures
	raw       *spool.Raw    // nil where raw events are not kept
	guarded   *sinks.Locked // the session's sink
}

func (w *worker) windowed(frequency int, start time.Time) *windowed {
	k := &windowed{worker: w, collector: pattern.New(int64(frequency)), steps: live.New(trigger.Published), samples: samplesOf(&w.config,
		frequency)}
	k.collector.Waited = k.steps.Waited
	evidence := live.NewEvidence(w.host)
	k.failures = live.NewFailures(evidence)
	k.guarded = &sinks.Locked{To: sinks.Tee{w.config.Sink(k.collector), k.steps, w.config.Sink(sinks.Tee{evidence, k.failures})}}
	if k.samples != nil {
		k.guarded.To = append(k.guarded.To, w.config.Sink(k.samples))
	}
	raw, err := spool.Open(w.config, w.job.Name, start)
	if err != nil {
		if w.config.SpoolMB > 0 {
			w.status.RawFailed++
		}
		w.say("window", fmt.Sprintf("raw events could not be saved: %v", err))
		return k
	}
	k.raw = raw
	k.guarded.To = append(k.guarded.To, raw.Sink)
	return k
}

// end closes the window and writes its patterns.
func (k *windowed) end(ctx context.Context) {
	w := k.worker
	rawBytes, err := k.raw.End()
	w.status.RawBytes += rawBytes
	if err != nil {
		w.status.RawFailed++
		w.say("window", fmt.Sprintf("raw events are in the spool in part: %v", err))
	}
	w.tell(ctx, time.Now(), k.failures.Take(), k.raw.Directory())
	w.dropped += k.failures.Left()
	w.status.Windows++
	done, _ := k.steps.Take(true)
	w.send(ctx, k.collector, done, rawBytes)
	w.export(ctx, k.samples)
}
