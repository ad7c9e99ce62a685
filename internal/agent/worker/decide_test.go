package worker

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/jobs"
	"github.com/ebpfprof/ebpfprof/internal/agent/spool"
	"github.com/ebpfprof/ebpfprof/internal/fleet/live"
	"github.com/ebpfprof/ebpfprof/internal/fleet/request"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/fleet/trigger"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

var fleetKey = []byte("a key of the fleet, long")

// twoNodes are workers of one job that share a store and a key, and that had a window
// before the time.
func twoNodes(t *testing.T, now time.Time) (here, there *worker) {
	t.Helper()
	location := t.TempDir()
	if _, err := store.NewDirectory(location); err != nil {
		t.Fatal(err)
	}
	of := func(host string) *worker {
		return &worker{host: host, job: jobs.Job{Name: "train"}, inbox: request.NewInbox("train", fleetKey),
			config: config.Config{Cooldown: config.Duration(10 * time.Minute)}, peers: &store.Lazy{Location: func() string { return location }},
			last: now.Add(-time.Hour)}
	}
	return of("here"), of("there")
}

func TestAWindowOfItsOwnBeginsOnTheGridAndPeersAreAskedForIt(t *testing.T) {
	now := time.Unix(1_800_000_001, 0)
	here, there := twoNodes(t, now)
	next, ok := here.decide(t.Context(), now, "slow", nil)
	if want := request.AlignedStart(now); !ok || !next.start.Equal(want) || next.reason != "slow" {
		t.Errorf("%v %v, want %v", ok, next, want)
	}
	if r := there.asked(t.Context(), now); r == nil || r.Start != next.start.UnixNano() || r.Reason != "slow" {
		t.Errorf("its peer was asked for %+v", r)
	}
	if _, ok := here.decide(t.Context(), now, "", nil); ok {
		t.Error("a window without a reason")
	}
}

// Who finds a peer's request when it has a reason of its own joins that window.
func TestAWorkerJoinsTheWindowThatAPeerWaitsFor(t *testing.T) {
	now := time.Unix(1_800_000_001, 0)
	here, there := twoNodes(t, now)
	first, _ := there.decide(t.Context(), now, "blocked", nil)
	later := first.start.Add(-100 * time.Millisecond) // by now its own would begin on the next place of the grid
	next, ok := here.decide(t.Context(), later, "slow", nil)
	if !ok || !next.start.Equal(first.start) || next.reason != "peer:blocked" {
		t.Errorf("%v %+v, its peer's begins at %v", ok, next, first.start)
	}
	if r := there.asked(t.Context(), now); r != nil {
		t.Errorf("who joins asks its peers: %+v", r)
	}
}

func TestNoWindowIsTakenInTheCoolDown(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	cool := 10 * time.Minute
	for _, c := range []struct {
		name  string
		since time.Duration // from the last window to the start of the next
		taken bool
	}{{"at once", 5 * time.Second, false}, {"a moment before it is over", cool - time.Nanosecond, false}, {"once it is over", cool, true}} {
		here, there := twoNodes(t, now)
		start := request.AlignedStart(now)
		here.last = start.Add(-c.since)
		if _, ok := here.decide(t.Context(), now, "slow", nil); ok != c.taken || here.status.Skipped != skipped(c.taken) {
			t.Errorf("%s: %v, %d skipped", c.name, ok, here.status.Skipped)
		}
		if r := there.asked(t.Context(), now); (r != nil) != c.taken {
			t.Errorf("%s: its peer was asked for %+v", c.name, r)
		}
		peer := request.New("train", "there", "slow", start, fleetKey)
		here.last, here.status.Skipped = start.Add(-c.since), 0
		if _, ok := here.decide(t.Context(), now, "", &peer); ok != c.taken || here.status.Skipped != skipped(c.taken) {
			t.Errorf("%s, for a peer: %v, %d skipped", c.name, ok, here.status.Skipped)
		}
	}
	here, _ := twoNodes(t, now)
	here.last = time.Time{}
	if _, ok := here.decide(context.Background(), now, "slow", nil); !ok {
		t.Error("the first window of all waits for nothing")
	}
}

// What failed is why, though the ranks that wait for it were seen first; a peer's window stays the peer's.
func TestAFailureIsTheReasonOfTheWindowThatWaits(t *testing.T) {
	for _, c := range []struct{ reason, failure, want string }{
		{"blocked", "out_of_memory", "out_of_memory"}, {"slow", "died", "died"}, {"blocked", "", "blocked"},
		{"peer:blocked", "out_of_memory", "peer:blocked"},
	} {
		next := planned{reason: c.reason}
		if next.because(c.failure); next.reason != c.want {
			t.Errorf("%s, then %q: %s, want %s", c.reason, c.failure, next.reason, c.want)
		}
	}
}

func skipped(taken bool) int64 {
	if taken {
		return 0
	}
	return 1
}

// A request that came in the cool-down is over with it: the window that is taken later
// begins when it is due, not at the time that was asked for then.
func TestASkippedRequestLeavesNoTimeBehind(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	here, there := twoNodes(t, now)
	here.last = now.Add(-time.Minute)
	asked, _ := there.decide(t.Context(), now, "slow", nil)
	if _, ok := here.decide(t.Context(), now, "", here.asked(t.Context(), now)); ok || here.status.Skipped != 1 {
		t.Fatalf("it was taken, %d skipped", here.status.Skipped)
	}
	later := now.Add(20 * time.Minute)
	next, ok := here.decide(t.Context(), later, "blocked", nil)
	if want := request.AlignedStart(later); !ok || !next.start.Equal(want) || next.reason != "blocked" {
		t.Errorf("%v %+v, want %v; the old one was for %v", ok, next, want, asked.start)
	}
}

// A worker that is ended and begins again, by itself or with the agent, has the cool-down
// of before.
func TestTheCoolDownOutlastsARestart(t *testing.T) {
	now, directory := time.Unix(1_800_000_000, 0), t.TempDir()
	if err := spool.KeepWindow(directory, "train", now); err != nil {
		t.Fatal(err)
	}
	again, there := twoNodes(t, now)
	var err error
	if again.last, err = spool.LastWindow(directory, "train", now.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	there.decide(t.Context(), now, "slow", nil)
	request := again.asked(t.Context(), now)
	if _, taken := again.decide(t.Context(), now, "", request); request == nil || taken || again.status.Skipped != 1 {
		t.Errorf("asked %v, taken %v, %d skipped", request, taken, again.status.Skipped)
	}
}

func TestAWorkerThatSeesNoStepsSaysSoOnce(t *testing.T) {
	w := worker{config: config.Config{Budget: "1%"}, steps: live.New(trigger.Published)}
	if text := w.blind(blindAfter - time.Second); text != "" {
		t.Errorf("of a job that is still young: %q", text)
	}
	if w.trains() {
		t.Error("it trains, of which nothing was seen")
	}
	if err := w.steps.Write(&event.Batch{Warnings: []event.Warning{{Kind: "slice", Source: "backward"}}}); err != nil {
		t.Fatal(err)
	}
	if !w.trains() {
		t.Error("backward passes are so many that they are in slices, and it does not train")
	}
	if text := w.blind(blindAfter); !strings.Contains(text, "backward") || !strings.Contains(text, "budget: 1%") {
		t.Errorf("it does not say why: %q", text)
	}
	if text := w.blind(2 * blindAfter); text != "" {
		t.Errorf("it says it again: %q", text)
	}
}

// Refused requests are counted each time, and said once a minute.
func TestAFloodOfRequestsDoesNotFloodTheLog(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	here, there := twoNodes(t, now)
	var log strings.Builder
	here.out = json.NewEncoder(&log)
	there.inbox = request.NewInbox("train", []byte("a key of somebody else's"))
	for range 5 {
		there.ask(t.Context(), "slow", request.AlignedStart(now))
		if r := here.asked(t.Context(), now); r != nil {
			t.Errorf("taken: %+v", r)
		}
	}
	if lines := strings.Count(log.String(), "\n"); here.status.Refused != 5 || lines != 1 || !strings.Contains(log.String(), "signature") {
		t.Errorf("%d refused, said in %d lines: %s", here.status.Refused, lines, log.String())
	}
}
