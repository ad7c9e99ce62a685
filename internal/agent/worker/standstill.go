package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/spool"
	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
	"github.com/ebpfprof/ebpfprof/internal/exchange/flightrecorder"
	"github.com/ebpfprof/ebpfprof/internal/fleet/live"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/fleet/trigger"
	"github.com/ebpfprof/ebpfprof/internal/version"
)

// A rank that is blocked is noticed at its deadline. Who keeps it waiting is reported once it is
// known where the threads of all ranks stand, or a little later without.

// standPatience is how long a verdict waits for stacks. The recorder makes sure for 4 s at
// the most that a thread stands still, and looks for half a second: within 10 s of the
// deadline there is a verdict.
const standPatience = 7 * time.Second

// Hang is a verdict as /jobs tells it: of this node's ranks alone. `ebpfprof fleet hang
// STORE` says what those of all nodes are together.
type Hang struct {
	At    time.Time `json:"at"`
	Since time.Time `json:"since"` // the last sign that the job went on
	hang.Verdict
	Dump string     `json:"dump"` // the directory with the flight recorder's dumps; "" without
	Over *time.Time `json:"over"` // null while it lasts
}

// Kinds counts verdicts by their kind.
type Kinds map[string]int64

// blocked is a job whose ranks are, and of which there is no verdict yet.
type blocked struct {
	noticed time.Time
	sinceNS int64 // the last anchor of the ranks that are
	asked   bool  // by a peer: here nothing was noticed
	unpaced bool  // no mean of steps is known by which this would be too long
}

// unpacedAfter is how long a rank has to wait for its peers to be blocked where it is not
// known how long a step takes: in the first steps, before them, or where none are seen.
const unpacedAfter = time.Minute

// blockUnpaced notes that ranks have waited for their peers for long where nothing is known
// of their steps. One may load a data set meanwhile: a verdict says so, and no window is
// taken of it, which would show nothing.
func (w *worker) blockUnpaced(now time.Time, waits map[int32]int64) {
	first := now.UnixNano()
	for _, since := range waits {
		first = min(first, since)
	}
	if w.blocked != nil || w.steps.Paced() || now.UnixNano()-first < unpacedAfter.Nanoseconds() {
		return
	}
	if last := w.status.Hang; last != nil && (last.Over == nil || !last.At.Before(time.Unix(0, first))) {
		return // it has been reported
	}
	w.blocked = &blocked{noticed: now, sinceNS: first, asked: true, unpaced: true}
}

// blockWith notes that a peer's ranks are blocked, where this node's make no step either:
// the rank that they wait for may be one of these, and be doing something between two steps.
func (w *worker) blockWith(peer string, now time.Time) {
	last := w.steps.LastNS()
	if said := w.status.Hang; said != nil && said.Over == nil {
		return // the verdict has been given
	}
	if peer == "peer:"+blockedReason && w.blocked == nil && last > 0 && now.UnixNano()-last >= trigger.Published.Least.Nanoseconds() {
		w.blocked = &blocked{noticed: now, sinceNS: last, asked: true}
	}
}

// block notes that a rank is blocked.
func (w *worker) block(d live.Degradation) {
	since := d.AtNS - d.IdleNS
	if w.blocked == nil {
		w.blocked = &blocked{noticed: time.Unix(0, d.AtNS), sinceNS: since}
	}
	w.blocked.sinceNS = min(w.blocked.sinceNS, since)
}

// judge gives the verdict, when it is time, and returns the reason for a window that it is.
func (w *worker) judge(ctx context.Context, now time.Time, still bool, e *live.Evidence) (reason string) {
	if last := w.status.Hang; last != nil && last.Over == nil && !still && w.blocked == nil && w.wentOn(last.At, e) {
		over := *last // the one before is being read
		over.Over = &now
		w.status.Hang = &over
		w.say(w.status.State, fmt.Sprintf("no rank is blocked any more, %.0f s after the last sign before that", now.Sub(last.Since).Seconds()))
	}
	b := w.blocked
	switch {
	case b == nil:
		return ""
	case !still && !b.asked:
		w.blocked = nil
		w.say(w.status.State, fmt.Sprintf("ranks were blocked for %.1f s, and are not any more", float64(now.UnixNano()-b.sinceNS)/1e9))
		return blockedReason
	case now.Sub(b.noticed) < standPatience && !e.Stood(b.sinceNS):
		return ""
	}
	w.conclude(ctx, now, e)
	if b.unpaced {
		return ""
	}
	return blockedReason
}

const blockedReason = "blocked"

// wentOn is whether a rank has done anything since. Where no steps are seen it is whether
// none of them waits.
func (w *worker) wentOn(since time.Time, e *live.Evidence) bool {
	if last := w.steps.LastNS(); last > 0 {
		return last > since.UnixNano()
	}
	return len(e.Waiting()) == 0
}

// conclude judges, and keeps the verdict and what it is of.
func (w *worker) conclude(ctx context.Context, now time.Time, e *live.Evidence) {
	b := w.blocked
	w.blocked = nil
	r := e.Recording(now.UnixNano(), b.sinceNS)
	h := &Hang{At: now, Since: time.Unix(0, b.sinceNS), Verdict: hang.Judge(r)}
	if w.status.Hangs == nil {
		w.status.Hangs = Kinds{}
	}
	counted := Kinds{h.Kind: 1} // the map before is being read
	for kind, n := range w.status.Hangs {
		counted[kind] += n
	}
	w.status.Hangs, w.status.Hang = counted, h
	var err error
	if h.Dump, err = w.dump(h.Since, e); err != nil && !errors.Is(err, flightrecorder.ErrNothing) {
		w.say(w.status.State, fmt.Sprintf("the dumps of what the ranks did are not written: %v", err))
	}
	if err := store.PutHang(context.WithoutCancel(ctx), w.outbox, store.Hang{Job: w.job.Name, Tool: version.Version, At: now.UnixNano(),
		Since:   b.sinceNS,
		Verdict: &h.Verdict, Recording: r, Dump: h.Dump}); err != nil {
		w.status.Unsent++
		w.say(w.status.State, fmt.Sprintf("the verdict could not be written for the store: %v", err))
	}
	h.Verdict = shortened(h.Verdict)
	w.say(w.status.State, "")
}

// dump writes what each rank did into the spool, and says where.
func (w *worker) dump(since time.Time, e *live.Evidence) (directory string, err error) {
	if w.config.SpoolMB == 0 {
		return "", nil
	}
	if err := spool.MakeRoom(w.config.Spool, w.config.SpoolMB<<20); err != nil {
		return "", err
	}
	directory = filepath.Join(w.config.Spool, spool.Name(since, "hang-"+w.job.Name))
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return "", err
	}
	if _, err := flightrecorder.Write(e.Job(), directory); err != nil {
		return "", errors.Join(err, os.Remove(directory))
	}
	return directory, nil
}

// MostStatus bounds a status in bytes: it is a line of a pipe.
const MostStatus = 1 << 20

// toldFrames are of a stack in /jobs, which is read by people: it has those of the threads
// that count, or none where they are too many.
const toldFrames = 32

func shortened(v hang.Verdict) hang.Verdict {
	report := *v.Report
	report.Groups = slices.Clone(report.Groups)
	v.Report = &report
	for _, threads := range []func([]hang.Thread) []hang.Thread{telling, func([]hang.Thread) []hang.Thread { return nil }} {
		for i := range report.Groups {
			g := &report.Groups[i]
			g.Missing, g.Waiting = ofRanks(g.Missing, threads), ofRanks(g.Waiting, threads)
		}
		if report.Unseen != nil {
			u := *report.Unseen
			u.Waiting, u.Others = ofProcesses(u.Waiting, threads), ofProcesses(u.Others, threads)
			report.Unseen = &u
		}
		v.Idle = ofProcesses(v.Idle, threads)
		if text, err := json.Marshal(v); err == nil && len(text) < MostStatus/2 {
			break
		}
	}
	return v
}

// telling are the main thread and those that run Python.
func telling(all []hang.Thread) (some []hang.Thread) {
	for _, t := range all {
		if t.Main || t.RunsPython() {
			t.Frames = t.Frames[:min(len(t.Frames), toldFrames)]
			some = append(some, t)
		}
	}
	return some
}

func ofRanks(all []hang.Rank, threads func([]hang.Thread) []hang.Thread) []hang.Rank {
	all = slices.Clone(all)
	for i := range all {
		all[i].Threads = threads(all[i].Threads)
	}
	return all
}

func ofProcesses(all []hang.Process, threads func([]hang.Thread) []hang.Thread) []hang.Process {
	all = slices.Clone(all)
	for i := range all {
		all[i].Threads = threads(all[i].Threads)
	}
	return all
}
