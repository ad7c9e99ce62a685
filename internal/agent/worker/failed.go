package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/spool"
	"github.com/ebpfprof/ebpfprof/internal/fleet/live"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/record/recorder"
	"github.com/ebpfprof/ebpfprof/internal/version"
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
	Also     int       `json:"also"`  // how many more there were before this was reported
}

const (
	// failedPatience is how long after a failure it is reported: its samples come in batches of a
	// second, and what else it brings down fails meanwhile.
	failedPatience = 2 * time.Second
	// failedEvery is how often those of a kind are reported at the most: a job may fail again and
	// again, and live. So often come a file for the store and a dataset in the spool.
	failedEvery = time.Minute
	// mostUntold are kept until then; more are counted.
	mostUntold = 64
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
	w := k.worker
	for _, f := range k.failures.Take() {
		if k.failing == nil {
			k.failing = &untold{noticed: now}
		}
		if len(k.failing.all) < mostUntold {
			k.failing.all = append(k.failing.all, f)
		} else {
			w.dropped++
		}
	}
	w.dropped += k.failures.Left()
	f := k.failing
	if f == nil || !over && (now.Sub(f.noticed) < failedPatience || !w.mayTell(now, f.all)) {
		return ""
	}
	k.failing = nil
	w.tell(ctx, now, f.all, k.dumpNewest(now, recording))
	return string(f.all[0].Kind)
}

// mayTell reports whether something of a kind is among failures that has not been reported for a while.
func (w *worker) mayTell(now time.Time, all []live.Failure) bool {
	return slices.ContainsFunc(all, func(f live.Failure) bool {
		last, told := w.told[f.Kind]
		return !told || now.Sub(last) >= failedEvery
	})
}

// tell keeps failures, the oldest first, for whoever asks and for the store.
func (w *worker) tell(ctx context.Context, now time.Time, all []live.Failure, dump string) {
	if len(all) == 0 {
		return
	}
	if w.told == nil {
		w.told = map[live.FailureKind]time.Time{}
	}
	counted := Kinds{} // the map before is being read
	maps.Copy(counted, w.status.Failures)
	var rows []store.FailureRow
	for i := range all {
		f := &all[i]
		counted[string(f.Kind)]++
		w.told[f.Kind] = now
		row := store.FailureRow{Job: w.job.Name, Host: w.host, At: f.AtNS, Kind: string(f.Kind), PID: f.PID, Sentence: f.Sentence, Place: f.Place,
			Dump: dump, Tool: version.Version}
		if f.Rank >= 0 {
			row.Rank = &f.Rank
		}
		rows = append(rows, row)
	}
	first := &rows[0] // the others may be of it
	w.status.Failures = counted
	w.status.Failed = &Failed{At: time.Unix(0, first.At), Kind: first.Kind, PID: first.PID, Rank: first.Rank, Sentence: first.Sentence,
		Place: first.Place, Dump: dump, Also: len(rows) - 1}
	if err := store.PutFailures(context.WithoutCancel(ctx), w.outbox, rows); err != nil {
		w.status.Unsent++
		w.say(w.status.State, fmt.Sprintf("what failed could not be written for the store: %v", err))
		return
	}
	w.say(w.status.State, "")
}

// dumpNewest writes what is kept of the job's last moments into the spool, and says where; ""
// where it was not written.
func (k *watching) dumpNewest(now time.Time, recording func() tracer.Recording) string {
	w := k.worker
	if w.config.SpoolMB == 0 {
		return ""
	}
	raw, err := spool.Open(w.config, w.job.Name+"-failed", now)
	if err != nil {
		w.status.RawFailed++
		w.say(w.status.State, fmt.Sprintf("the job's last moments could not be saved: %v", err))
		return ""
	}
	described := recording()
	described.StartedNS = k.newest.FromNS()
	raw.Begin(described)
	err = k.newest.CopyTo(raw.Sink)
	bytes, failed := raw.End()
	w.status.RawBytes += bytes
	if err = errors.Join(err, failed); err != nil {
		w.status.RawFailed++
		w.say(w.status.State, fmt.Sprintf("the job's last moments are in the spool in part: %v", err))
	}
	return raw.Directory()
}

// describing says what a session is, when it is asked.
func (w *worker) describing(options tracer.Options, session *tracer.Session) func() tracer.Recording {
	return func() tracer.Recording {
		r := recorder.Describe(options, 0, w.config.Redact, time.Now())
		r.Host, r.ClockOffsetNS = w.host, session.ClockOffsetNS()
		return r
	}
}
