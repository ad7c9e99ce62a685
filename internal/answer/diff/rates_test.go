package diff

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/verdict"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// server is a job without steps that answers requests for some seconds: each takes an operator three times and the CPU time of
// three functions, all of which slower makes rarer, and then extra time in a function that nothing else calls. A
// single operator is no loop.
func server(seed uint64, seconds int, slower float64, extra int64) *scripted.Job {
	random := rand.New(rand.NewPCG(seed, 1))
	j := scripted.New()
	until := j.Now + int64(seconds)*1e9
	for j.Now < until {
		request := int64(20e6 * slower * (0.9 + 0.2*random.Float64()))
		for i := range 3 {
			j.Op("aten::linear", request/4)
			j.Sample("on_cpu", 5e6, scripted.Python([]string{"embed", "project", "choose"}[i], "model.py", int32(10+i)))
		}
		j.Sample("on_cpu", 5e6+extra, scripted.Python("answer", "server.py", 40))
		j.Wait(request/4 + extra)
	}
	return j
}

func TestRecordingsWithoutStepsAreComparedByRates(t *testing.T) {
	before := sideOf(t, scripted.Write(t, server(1, 8, 1, 0)))
	for name, c := range map[string]struct {
		job  *scripted.Job
		want verdict.Verdict
		text string
	}{
		"the same job for as long":               {server(2, 8, 1, 0), verdict.Neutral, workOfASecond},
		"the same job, recorded twice as long":   {server(3, 16, 1, 0), verdict.Neutral, workOfASecond},
		"all of it twice as slow":                {server(4, 8, 2, 0), verdict.Regression, workOfASecond},
		"one function takes as long as the rest": {server(5, 8, 1, 20e6), verdict.Regression, "answer"},
		"faster":                                 {server(6, 8, 0.5, 0), verdict.Improvement, workOfASecond},
	} {
		r := Compare(before, sideOf(t, scripted.Write(t, c.job)), 3)
		if r.Verdict != c.want || !strings.Contains(r.Sentence, c.text) {
			t.Errorf("%s: %s, want %s with %q", name, r.Sentence, c.want, c.text)
		}
	}
}

// The factor is what the work takes longer, and lies within the noise that is stated.
func TestTheFactorOfRatesIsTheJobs(t *testing.T) {
	before := sideOf(t, scripted.Write(t, server(1, 8, 1, 0)))
	for factor, extra := range map[float64]int64{1: 0, 1.5: 10e6, 3: 40e6} {
		after := sideOf(t, scripted.Write(t, server(7, 12, 1, extra)))
		got, noise, kinds, ok := sameWork(before, after)
		if !ok || kinds < 5 || got < factor*(1-noise-0.02) || got > factor*(1+noise+0.02) {
			t.Errorf("a factor of %.3f ±%.3f by %d kinds, want %.1f", got, noise, kinds, factor)
		}
	}
}

func TestWithoutStepsAndRatesNothingIsCompared(t *testing.T) {
	idle := func() *scripted.Job {
		j := scripted.New()
		for range 100 {
			j.Sample("off_cpu", 100e6, scripted.Python("wait", "hang.py", 3))
			j.Wait(100e6)
		}
		return j
	}
	r := Compare(sideOf(t, scripted.Write(t, idle())), sideOf(t, scripted.Write(t, idle())), 3)
	if r.Verdict != verdict.Inconclusive || !strings.Contains(r.Sentence, "neither has steps") || r.ExitCode() != 12 {
		t.Errorf("exit code %d: %s", r.ExitCode(), r.Sentence)
	}
}

// Repeats of a side are parts of one recording.
func TestRepeatsWithoutStepsAreOneRecording(t *testing.T) {
	side := func(first uint64, slower float64) *Side {
		var all []*Side
		for seed := range uint64(3) {
			all = append(all, sideOf(t, scripted.Write(t, server(first+seed, 4, slower, 0))))
		}
		return Join(all[0], all[1:]...)
	}
	before := side(1, 1)
	if r := Compare(before, side(11, 1), 3); r.Verdict != verdict.Neutral {
		t.Errorf("the same: %s", r.Sentence)
	}
	if r := Compare(before, side(21, 1.5), 3); r.Verdict != verdict.Regression {
		t.Errorf("slower by half: %s", r.Sentence)
	}
}

// Where nearly all time is in one function, the others are too rare for a rate: shares say that nothing has moved.
func TestRecordingsOfOneHotFunctionAreAlikeByItsShare(t *testing.T) {
	job := func(seed uint64, hot float64) *scripted.Job {
		random := rand.New(rand.NewPCG(seed, 2))
		j := scripted.New()
		for range 1000 {
			name := "other"
			if random.Float64() < hot {
				name = "hot"
			}
			j.Sample("on_cpu", 10e6, scripted.Python(name, "job.py", 3))
			j.Wait(10e6)
		}
		return j
	}
	before := sideOf(t, scripted.Write(t, job(1, 0.97)))
	if r := Compare(before, sideOf(t, scripted.Write(t, job(2, 0.97))), 3); r.Verdict != verdict.Neutral || !strings.Contains(r.Sentence,
		"same functions") {
		t.Errorf("the same: %s", r.Sentence)
	}
	if r := Compare(before, sideOf(t, scripted.Write(t, job(3, 0.60))), 3); r.Verdict != verdict.Inconclusive {
		t.Errorf("another share: %s", r.Sentence)
	}
}
