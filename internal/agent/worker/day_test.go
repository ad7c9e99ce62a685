package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/jobs"
	"github.com/ebpfprof/ebpfprof/internal/agent/sinks"
	"github.com/ebpfprof/ebpfprof/internal/agent/spool"
	"github.com/ebpfprof/ebpfprof/internal/fleet/live"
	"github.com/ebpfprof/ebpfprof/internal/fleet/outbox"
	"github.com/ebpfprof/ebpfprof/internal/fleet/trigger"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// simulated is how much of a job's life is replayed: an hour, or what EBPFPROF_SIMULATED says.
func simulated(t *testing.T) time.Duration {
	t.Helper()
	said := os.Getenv("EBPFPROF_SIMULATED")
	if said == "" {
		return time.Hour
	}
	d, err := time.ParseDuration(said)
	if err != nil || d < time.Hour {
		t.Fatalf("EBPFPROF_SIMULATED: %q is no time of an hour or more", said)
	}
	return d
}

// taking is a store that is away for a part of the time.
type taking struct {
	away  bool
	files int64
	bytes map[string]int64 // by table
}

func (s *taking) Put(_ context.Context, key string, content []byte) error {
	if s.away {
		return errors.New("away")
	}
	s.files++
	s.bytes[strings.Split(key, "/")[1]] += int64(len(content))
	return nil
}

// lived is what a worker has at one moment.
type lived struct {
	heap, rss float64 // MiB; the heap's part that is in use after a collection
	held      map[string]int
	spool     int64
}

// TestAWorkersMemoryIsFlat replays a job's life under a forged clock through all that a
// worker does with events at level anchor: the decoder of calls, steps and triggers,
// patterns, windows with their raw events, the spool, the outbox whose store is away for
// a quarter of the time, and, beside it, the dataset that `attach --level anchor` would
// write, rotated each minute. Only the kernel is not there. A day of it is a part of `make soak`.
func TestAWorkersMemoryIsFlat(t *testing.T) {
	if raced {
		t.Skip("under the race detector memory is the detector's: make test-soak runs it without")
	}
	length := simulated(t)
	c := config.Defaults()
	c.Spool, c.SpoolMB, c.OutboxMB, c.Host = t.TempDir(), 2, 1, "node"
	box, err := spool.Outbox(c.Spool)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	w := &worker{config: c, job: jobs.Job{Name: "train"}, outbox: box, host: "node", out: json.NewEncoder(io.Discard),
		steps:  live.New(trigger.Published),
		status: Status{Job: "train"}}
	to := &taking{bytes: map[string]int64{}}
	sender := outbox.NewSender(box, to, func() int64 { return c.OutboxMB << 20 })
	day := &simulation{t: t, w: w, k: w.watching(), sender: sender, to: to, job: newReplayed(begin.UnixNano())}
	day.beside(t.TempDir())
	if err := day.job.begin(sinks.Tee{day.k.guarded, day.anchor}); err != nil {
		t.Fatal(err)
	}
	var all []lived
	const looks = 24
	for i := range looks {
		day.to.away = i >= looks/4 && i < looks/2
		day.live(begin.Add(length * time.Duration(i+1) / looks))
		all = append(all, day.lived())
		if length > time.Hour {
			t.Logf("%5.1f h: RSS %.0f MiB, heap %.1f MiB, spool %.1f MB, %+v", (length * time.Duration(i+1) / looks).Hours(), all[i].rss,
				all[i].heap, float64(all[i].spool)/1e6, w.status)
		}
	}
	if err := day.anchor.Close(); err != nil {
		t.Fatal(err)
	}
	day.judge(all, length)
}

// simulation is a worker and the job that it is told of.
type simulation struct {
	t      *testing.T
	w      *worker
	k      *watching
	sender *outbox.Sender
	to     *taking
	job    *replayed
	anchor *output.Dataset
	minute int64 // of the job's clock: what was done last
}

func (s *simulation) must(err error) {
	if err != nil {
		s.t.Helper()
		s.t.Fatal(err)
	}
}

// beside makes the dataset of a recording at anchor.
func (s *simulation) beside(dir string) {
	d, err := output.Create(filepath.Join(dir, "anchor"), output.Options{RotateEvery: 1000 * time.Hour, Access: output.PrivateAccess()})
	s.must(err)
	s.must(d.Session(event.Recording{ID: "replayed", StartedNS: s.job.now}))
	s.anchor = d
}

// live lets the job run until a time, and the worker do what its tickers have it do.
func (s *simulation) live(until time.Time) {
	for s.job.now < until.UnixNano() {
		s.must(s.job.step(false))
		now := time.Unix(0, s.job.now)
		reason := s.k.look(s.t.Context(), now, nil)
		if next, ok := s.w.decide(s.t.Context(), now, reason, nil); ok {
			s.window(next)
		}
		if minute := s.job.now / int64(time.Minute); minute != s.minute {
			s.minute = minute
			s.eachMinute(minute)
		}
	}
}

func (s *simulation) eachMinute(minute int64) {
	s.k.send(s.t.Context())
	_ = s.sender.Pass(s.t.Context()) // while the store is away it fails
	s.must(s.anchor.Rotate())
	files, err := filepath.Glob(filepath.Join(s.anchor.Dir(), "*", "*-[0-9][0-9][0-9][0-9][0-9][0-9].parquet"))
	s.must(err)
	for _, f := range files { // as an uploader takes them
		s.must(os.Remove(f))
	}
	// Every forty minutes a step takes a tenth longer for five, in every other four hours: in
	// those between there is one session, which fills its caches.
	s.job.slower = 1
	if minute%40 >= 30 && minute%40 < 35 && minute/240%2 == 0 {
		s.job.slower = 1.1
	}
}

// window is what Work does for one.
func (s *simulation) window(next planned) {
	s.k.send(s.t.Context())
	s.w.windowAt(next.start)
	k := s.w.windowed(99, next.start)
	k.raw.Begin(event.Recording{ID: "window", StartedNS: s.job.now})
	s.must(s.job.begin(k.guarded))
	for end := s.job.now + int64(20*time.Second); s.job.now < end; {
		s.must(s.job.step(true))
	}
	k.end(s.t.Context())
	s.w.steps.Restart()
	s.w.windowAt(time.Unix(0, s.job.now))
	s.k = s.w.watching() // the next session
	s.must(s.job.begin(sinks.Tee{s.k.guarded, s.anchor}))
}

func (s *simulation) lived() lived {
	l := lived{held: map[string]int{}}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	l.heap = float64(m.HeapAlloc) / (1 << 20)
	status, err := os.ReadFile("/proc/self/status")
	s.must(err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			s.must(err)
			l.rss = float64(kib) / 1024
		}
	}
	hold(reflect.ValueOf(s.k.worker), "worker", l.held, map[uintptr]bool{})
	hold(reflect.ValueOf(s.k.collector), "collector", l.held, map[uintptr]bool{})
	hold(reflect.ValueOf(s.k.steps), "steps", l.held, map[uintptr]bool{})
	hold(reflect.ValueOf(s.k.evidence), "evidence", l.held, map[uintptr]bool{})
	l.spool, err = spool.Bytes(s.w.config.Spool)
	s.must(err)
	return l
}

// hold adds up how many elements all maps and slices have that can be reached, by where
// they are: what is added to these types later is looked at, too.
func hold(v reflect.Value, path string, held map[string]int, seen map[uintptr]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !seen[v.Pointer()] {
			seen[v.Pointer()] = true
			hold(v.Elem(), path, held, seen)
		}
	case reflect.Interface:
		if !v.IsNil() {
			hold(v.Elem(), path, held, seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			hold(v.Field(i), path+"."+v.Type().Field(i).Name, held, seen)
		}
	case reflect.Map:
		held[path] += v.Len()
		for each := v.MapRange(); each.Next(); {
			hold(each.Value(), path+"[]", held, seen)
		}
	case reflect.Slice, reflect.Array:
		held[path] += v.Len()
		switch v.Type().Elem().Kind() {
		case reflect.Pointer, reflect.Struct, reflect.Map, reflect.Slice, reflect.Interface:
			for i := range v.Len() {
				hold(v.Index(i), path+"[]", held, seen)
			}
		}
	}
}

// caches fill up to limits of their own, and not within an hour.
var caches = []string{"collector.stacks."}

// generation is one of two that fill up and are thrown away in turn, some hours each: how full it
// is at a look says nothing. Its limits have a test in package live; the heap is judged here.
const generation = "evidence.stacks."

// judge compares the second quarter of the time with the last.
func (s *simulation) judge(all []lived, length time.Duration) {
	t, n := s.t, len(all)
	most := func(quarter int, of func(lived) float64) (m float64) {
		for _, l := range all[quarter*n/4 : (quarter+1)*n/4] {
			m = max(m, of(l))
		}
		return m
	}
	last := all[n-1]
	before, after := most(1, func(l lived) float64 { return l.heap }), most(3, func(l lived) float64 { return l.heap })
	if after > before*1.1+8 && length > time.Hour || after > 96 {
		t.Errorf("the heap in use grew from %.1f to %.1f MiB", before, after)
	}
	if rss := most(3, func(l lived) float64 { return l.rss }); rss > 200 {
		t.Errorf("RSS of %.0f MiB", rss)
	}
	for where := range last.held {
		of := func(l lived) float64 { return float64(l.held[where]) }
		before, after := most(1, of), most(3, of)
		filling := length <= time.Hour && slices.ContainsFunc(caches, func(c string) bool { return strings.HasPrefix(where, c) })
		if after > before*1.1+64 && !filling && !strings.HasPrefix(where, generation) {
			t.Errorf("%s has %.0f elements, %.0f before", where, after, before)
		}
	}
	if c := s.w.config; last.spool > (c.SpoolMB+c.OutboxMB+4)<<20 {
		t.Errorf("the spool has %d bytes", last.spool)
	}
	hours := length.Hours()
	status, state, ranks := s.w.status, s.sender.State(), float64(len(s.job.ranks))
	if status.Windows < int64(hours/3) || status.Windows == 0 || status.Steps < int64(hours*3000) || status.Dropped > 0 || s.to.files == 0 ||
		state.Dropped == 0 && hours > 1 {
		t.Errorf("too little happened, or too much was lost: %+v, outbox %+v", status, state)
	}
	if lost := s.k.collector.Lost(); lost.Workers > 0 || lost.Stacks > 0 {
		t.Errorf("lost %+v", lost)
	}
	var recorded int64
	for _, table := range s.anchor.Stats() {
		recorded += table.Bytes
	}
	if perHour := float64(recorded) / hours / ranks; perHour > 100e6 {
		t.Errorf("a recording at anchor takes %.0f MB an hour and rank", perHour/1e6)
	}
	fmt.Fprintf(t.Output(), "%.0f h simulated: %d events, %d steps, %d windows; RSS at the most %.0f, %.0f, %.0f, %.0f MiB in each quarter; "+
		"heap in use %.1f MiB\n",
		hours, s.job.events, status.Steps, status.Windows, most(0, func(l lived) float64 { return l.rss }),
		most(1, func(l lived) float64 { return l.rss }),
		most(2, func(l lived) float64 { return l.rss }), most(3, func(l lived) float64 { return l.rss }), last.heap)
	fmt.Fprintf(t.Output(), "for the store %.2f MB an hour and rank (patterns and steps), raw events of windows %.1f MB, of which %d MB "+
		"stay; a dataset at anchor %.1f MB an hour and rank; %d files dropped by the outbox\n",
		float64(status.Bytes)/1e6/hours/ranks, float64(status.RawBytes)/1e6, s.w.config.SpoolMB, float64(recorded)/1e6/hours/ranks, state.Dropped)
}
