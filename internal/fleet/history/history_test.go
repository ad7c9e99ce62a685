package history

import (
	"bytes"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/answer/verdict"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

const (
	begin = int64(1_700_000_000e9) / minute * minute
	hour  = 60 * minute
)

// job has two ranks. In each minute there are 100 steps of the length that length gives
// for it (ms; 0 is none), of which rank 1 works all but 10 ms and rank 0 works 20 ms; all
// of rank 1's work above 20 ms is tokenize's.
func job(t *testing.T, minutes int64, length func(n int64) float64) *dataset.DB {
	t.Helper()
	return restarted(t, minutes, length, minutes)
}

// restarted is job, whose ranks are other processes on another host from a minute on.
func restarted(t *testing.T, minutes int64, length func(n int64) float64, again int64) *dataset.DB {
	t.Helper()
	root := t.TempDir()
	s, err := store.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	for rank := range int32(2) {
		runs := [2]store.Batch{{Session: "s", Job: "llama", Host: "a"}, {Session: "again", Job: "llama", Host: "b"}}
		for n := range minutes {
			period, b, pid := length(n), &runs[0], 100+rank
			if n >= again {
				b, pid = &runs[1], 900+rank
			}
			if period == 0 {
				continue
			}
			own, at := 20.0, begin+n*minute
			if rank == 1 {
				own = period - 10
			}
			p := pattern.Pattern{Host: b.Host, PID: pid, Rank: rank, BeginNS: at, EndNS: at + minute, ObservedNS: minute, Coverage: 1,
				Basis: pattern.Sampled, Resource: "cpu"}
			work, slow := p, p
			work.Function, work.Class, work.Name, work.Beta = 1, pattern.Compute, "aten::mm", 20/period
			slow.Function, slow.Class, slow.Name, slow.File, slow.Line, slow.Beta = 2, pattern.Python, "tokenize (tok.py)", "/a/tok.py", 7,
				(own-20)/period
			b.Patterns = append(b.Patterns, work)
			if slow.Beta > 0 {
				b.Patterns = append(b.Patterns, slow)
			}
			for k := range int64(100) {
				b.Steps = append(b.Steps, pattern.Step{PID: p.PID, Rank: rank, Number: n*100 + k, BeginNS: at + k*minute/100,
					PeriodNS: int64(period * 1e6), WaitNS: int64((period - own) * 1e6), LoadNS: -1})
			}
		}
		for _, b := range runs {
			if _, err := store.Send(t.Context(), s, b); err != nil && !errors.Is(err, store.ErrNothing) {
				t.Fatal(err)
			}
		}
	}
	db, err := dataset.Open(filepath.Join(root, store.Version))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// slower takes 60 ms a step and from the given minute on so much more; minutes differ by
// one percent.
func slower(from int64, by float64) func(int64) float64 {
	return func(n int64) float64 {
		length := 60 + 0.3*math.Cos(float64(n)*2)
		if n >= from {
			length += by
		}
		return length
	}
}

var tenMinutes = Question{Since: 10 * time.Minute, Look: 24 * time.Hour, FailOnPercent: 5}

func TestAJobThatBecameSlowerIsComparedWithItsBest(t *testing.T) {
	r, err := Compare(t.Context(), job(t, 60, slower(50, 12)), tenMinutes)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != verdict.Regression || r.ExitCode() != verdict.ExitRegression || math.Abs(r.ChangePercent-20) > 1 || r.Job != "llama" ||
		r.Now.Workers != 2 || r.Now.Steps < 1900 {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{"tokenize (tok.py:7)", "on rank 1", "best 10m0s"} {
		if !strings.Contains(r.Sentence, want) {
			t.Errorf("%q has no %q", r.Sentence, want)
		}
	}
	if w := r.Workers[0]; *w.Rank != 1 || !w.Significant || math.Abs(*w.NowMS-*w.ThenMS-12) > 0.5 || r.Workers[1].Significant {
		t.Errorf("%+v", r.Workers)
	}
	// It is one of two workers, on average over which functions are told.
	if f := r.Functions[0]; f.Name != "tokenize (tok.py)" || !f.Significant || math.Abs(f.NowMS-f.ThenMS-6) > 1 {
		t.Errorf("%+v", r.Functions)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text, 10); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{r.Sentence, "tttttttttt", "nnnnnnnnnn", "* ", "aten::mm"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// A job that has begun again is the same one, as long as it keeps its name: its ranks are
// other processes then, perhaps on other hosts.
func TestAJobThatHasBegunAgainIsComparedWithItself(t *testing.T) {
	want, err := Compare(t.Context(), job(t, 60, slower(50, 12)), tenMinutes)
	if err != nil {
		t.Fatal(err)
	}
	for _, again := range []int64{50, 55} { // the run before, and one of which both are in what is compared
		r, err := Compare(t.Context(), restarted(t, 60, slower(50, 12), again), tenMinutes)
		if err != nil {
			t.Fatal(err)
		}
		if r.Sentence != want.Sentence || r.ChangePercent != want.ChangePercent || len(r.Workers) != 2 || !r.Workers[0].Significant {
			t.Errorf("again at minute %d: %s\n%+v\nwant %s", again, r.Sentence, r.Workers, want.Sentence)
		}
	}
}

func TestVerdicts(t *testing.T) {
	flat := slower(1<<40, 0)
	for _, c := range []struct {
		name   string
		length func(int64) float64
		q      Question
		want   verdict.Verdict
	}{
		{"as always", flat, tenMinutes, verdict.Neutral},
		{"a little slower than --fail-on", slower(50, 2), tenMinutes, verdict.Neutral},
		{"faster than an hour ago", slower(100, -12), Question{Since: 10 * time.Minute, Ago: time.Hour, FailOnPercent: 5}, verdict.Improvement},
		{"as an hour ago", flat, Question{Since: 10 * time.Minute, Ago: time.Hour, FailOnPercent: 5}, verdict.Neutral},
		{"every minute another", func(n int64) float64 { return 60 + 30*float64(n%3) - 25*float64((n/55)%2)*float64(n%2) },
			Question{Since: 10 * time.Minute, Ago: time.Hour, FailOnPercent: 5}, verdict.Inconclusive},
		{"one minute", slower(119, 12), Question{Since: 30 * time.Second, Ago: time.Hour, FailOnPercent: 5}, verdict.Inconclusive},
	} {
		r, err := Compare(t.Context(), job(t, 120, c.length), c.q)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if r.Verdict != c.want || (r.ExitCode() == 0) != (c.want == verdict.Neutral || c.want == verdict.Improvement) {
			t.Errorf("%s: %s", c.name, r.Sentence)
		}
	}
}

func TestWithoutHistoryThereIsASentence(t *testing.T) {
	db := job(t, 20, func(n int64) float64 {
		if n < 10 {
			return 0
		}
		return 60
	})
	for _, c := range []struct {
		name string
		q    Question
		want error
	}{
		{"another job", Question{Job: "other", Since: time.Minute, Look: time.Hour}, ErrNoJob},
		{"nothing before", Question{Since: 30 * time.Minute, Look: time.Hour}, ErrNoHistory},
		{"nothing then", Question{Since: time.Minute, Ago: 24 * time.Hour}, ErrNoHistory},
	} {
		if _, err := Compare(t.Context(), db, c.q); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A side of another version of the analysis says nothing of functions, and steps are
// compared as ever.
func TestFunctionsAreComparedWithinOneVersion(t *testing.T) {
	root := t.TempDir()
	s, err := store.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(40) {
		version, share := "2", 0.1
		if n < 20 {
			version, share = "1", 0.5
		}
		rank, at := int32(0), begin+n*minute
		rows := []store.PatternRow{{Session: "s", Job: "llama", Host: "a", PID: 100, Rank: &rank, Begin: at, End: at + minute, Observed: minute,
			Coverage: 1,
			Basis:    "samples", Function: 1, Class: "host", Name: "preempted", Beta: share, AnalysisID: version}}
		content, err := store.Encode(rows)
		if err != nil {
			t.Fatal(err)
		}
		place := store.Partition{Table: "pattern", Job: "llama", Host: "a", At: time.Unix(0, at)}
		if err := s.Put(t.Context(), place.Key(content), content); err != nil {
			t.Fatal(err)
		}
		var steps []store.StepRow
		for k := range int64(100) {
			steps = append(steps, store.StepRow{Session: "s", Job: "llama", Host: "a", PID: 100, Rank: &rank, Number: n*100 + k,
				Begin: at + k*minute/100, Period: 100e6})
		}
		if content, err = store.Encode(steps); err != nil {
			t.Fatal(err)
		}
		place.Table = "worker_step"
		if err := s.Put(t.Context(), place.Key(content), content); err != nil {
			t.Fatal(err)
		}
	}
	db, err := dataset.Open(filepath.Join(root, store.Version))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, ago := range []time.Duration{30 * time.Minute, 5 * time.Minute} {
		r, err := Compare(t.Context(), db, Question{Since: 5 * time.Minute, Look: 24 * time.Hour, Ago: ago, FailOnPercent: 5})
		if err != nil {
			t.Fatal(err)
		}
		told := strings.Contains(strings.Join(r.Notes, "\n"), "those of version 2")
		if told != (ago == 30*time.Minute) {
			t.Errorf("%v ago: %q", ago, r.Notes)
		}
		for _, f := range r.Functions {
			if f.Significant || ago == 30*time.Minute && f.ThenMS != 0 {
				t.Errorf("%v ago: %+v", ago, f)
			}
		}
	}
}

func TestWhoHasNoPatternsIsSaid(t *testing.T) {
	for _, c := range []struct {
		then, now int
		want      string
	}{{0, 0, "there are steps and no patterns"}, {3, 0, "one side has no patterns"}, {0, 3, "one side has no patterns"}, {3, 3, ""}} {
		r := &Result{}
		r.functions(&side{minutes: c.then}, &side{minutes: c.now})
		if said := strings.Join(r.Notes, "\n"); c.want == "" && said != "" || !strings.HasPrefix(said, c.want) {
			t.Errorf("%d and %d minutes with patterns: %q", c.then, c.now, said)
		}
	}
}
