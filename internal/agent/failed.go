package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/fleet/live"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/recorder"
	"github.com/ebpfprof/ebpfprof/tracer"
)

// What fails in a job is noticed as it does: memory had no room, a call returned an error, a
// process has died. The job's last moments are written into the spool then, and a window is
// taken of what is left of it and of its peers.

// Failed is a failure as /jobs tells it.
type Failed struct {
	At       time.Time `json:"at"`
	Kind     string    `json:"kind"`
	PID      int32     `json:"pid"`
	Rank     *int32    `json:"rank"`
	Sentence string    `json:"sentence"`
	Place    string    `json:"place"` // in the job's own code; "" where it is not known
	Dump     string    `json:"dump"`  // the dataset of the last moments, in the spool; "" without
}

const (
	// failedPatience is how long after a failure its last moments are written: samples are read
	// in batches of a second.
	failedPatience = 2 * time.Second
	// dumpEvery is how often they are of one kind, at the most: a job may fail again and again,
	// and live.
	dumpEvery = time.Minute
)

// untold is what has failed, and is not told yet.
type untold struct {
	noticed time.Time
	all     []live.Failure
}

// fail tells what has failed a moment ago, with the job's last moments, and returns a reason
// for a window; "" is none. recording describes the session, which is over or goes on.
func (k *watching) fail(ctx context.Context, now time.Time, over bool, recording func() tracer.Recording) (reason string) {
	k.guarded.Lock()
	defer k.guarded.Unlock()
	if noted := k.failures.Take(); len(noted) > 0 {
		if k.failing == nil {
			k.failing = &untold{noticed: now}
		}
		k.failing.all = append(k.failing.all, noted...)
	}
	f := k.failing
	if f == nil || !over && now.Sub(f.noticed) < failedPatience {
		return ""
	}
	k.failing = nil
	dump := k.dumpNewest(now, f.all, recording)
	for _, one := range f.all {
		k.tell(ctx, one, dump)
	}
	return string(f.all[0].Kind)
}

// tell keeps a failure, for whoever asks and for the store.
func (w *worker) tell(ctx context.Context, f live.Failure, dump string) {
	counted := kinds{string(f.Kind): 1} // the map before is being read
	for kind, n := range w.status.Failures {
		counted[kind] += n
	}
	told := &Failed{At: time.Unix(0, f.AtNS), Kind: string(f.Kind), PID: f.PID, Sentence: f.Sentence, Place: f.Place, Dump: dump}
	if f.Rank >= 0 {
		told.Rank = &f.Rank
	}
	w.status.Failures, w.status.Failed = counted, told
	if err := store.PutFailure(context.WithoutCancel(ctx), w.outbox, store.FailureRow{
		Job: w.job.Name, Host: w.host, At: f.AtNS, Kind: told.Kind, PID: f.PID, Rank: told.Rank, Sentence: f.Sentence, Place: f.Place, Dump: dump, Tool: cli.Version,
	}); err != nil {
		w.status.Unsent++
		w.say(w.status.State, fmt.Sprintf("a failure could not be written for the store: %v", err))
		return
	}
	w.say(w.status.State, "")
}

// dumpNewest writes what is kept of the job's last moments into the spool, and says where; ""
// where it was not written.
func (k *watching) dumpNewest(now time.Time, of []live.Failure, recording func() tracer.Recording) string {
	w := k.worker
	due := false
	for _, f := range of {
		if last, ok := w.dumped[f.Kind]; !ok || now.Sub(last) >= dumpEvery {
			due = true
		}
	}
	if w.config.SpoolMB == 0 || !due {
		return ""
	}
	if w.dumped == nil {
		w.dumped = map[live.FailureKind]time.Time{}
	}
	for _, f := range of {
		w.dumped[f.Kind] = now
	}
	raw, err := openRaw(w.config, w.job.Name+"-failed", now)
	if err != nil {
		w.status.RawFailed++
		w.say(w.status.State, fmt.Sprintf("the job's last moments are not kept: %v", err))
		return ""
	}
	described := recording()
	described.StartedNS = k.newest.FromNS()
	raw.begin(described)
	err = k.newest.Write(raw.sink)
	bytes, failed := raw.end()
	w.status.RawBytes += bytes
	if err = errors.Join(err, failed); err != nil {
		w.status.RawFailed++
		w.say(w.status.State, fmt.Sprintf("the job's last moments are in the spool in part: %v", err))
	}
	return raw.directory()
}

// alsoFailed adds what failed under another worker of the job: a launcher that begins a job
// anew after a rank has died has another one follow it.
func (s *Status) alsoFailed(before *Status) {
	s.Failed = cmp.Or(s.Failed, before.Failed)
	if len(before.Failures) == 0 {
		return
	}
	sum := maps.Clone(before.Failures)
	for kind, n := range s.Failures {
		sum[kind] += n
	}
	s.Failures = sum
}

// describing says what a session is, when it is asked.
func (w *worker) describing(options tracer.Options, session *tracer.Session) func() tracer.Recording {
	return func() tracer.Recording {
		r := recorder.Describe(options, 0, w.config.Redact, time.Now())
		r.Host, r.ClockOffsetNS = w.host, session.ClockOffsetNS()
		return r
	}
}

// logFailed tells of a failure once.
func (s *supervisor) logFailed(before *Failed, now *Status) {
	f := now.Failed
	if f == nil || before != nil && *before == *f {
		return
	}
	s.log.Warn("job failed", "job", now.Job, "kind", f.Kind, "what", f.Sentence, "at", cmp.Or(f.Place, "unknown"), "since", f.At.UTC().Format(time.RFC3339), "last_moments", f.Dump)
}
