package localise

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
)

// fleet makes synthetic patterns: every worker has the same few functions, with
// noise. plant changes some of them.
type fleet struct {
	workers int
	noise   float64
	seed    uint64
}

const (
	wait = iota + 1
	loader
	operators
	sleeping
)

func (f fleet) patterns(plant func(rank int, p *pattern.Pattern)) (all []pattern.Pattern) {
	random := rand.New(rand.NewPCG(f.seed, 7))
	for rank := range f.workers {
		for _, p := range []pattern.Pattern{
			{Function: wait, Class: pattern.Collective, Name: "c10d::Work::wait", Beta: 0.25, Mu: 0.01, Wait: "futex"},
			{Function: loader, Class: pattern.Loader, Name: "Data.__getitem__ (data.py)", File: "/data.py", Line: 4, Beta: 0.02, Mu: 0.9},
			{Function: operators, Class: pattern.Compute, Name: "aten::linear", Beta: 0.6, Mu: 0.98},
		} {
			p.Host, p.PID, p.Rank, p.Basis, p.Resource = fmt.Sprint("node", rank/8), int32(rank), int32(rank), pattern.Sampled, "cpu"
			p.ObservedNS, p.EndNS = 20e9, 20e9
			p.Beta *= 1 + f.noise*(2*random.Float64()-1)
			p.Mu *= 1 - f.noise*random.Float64()
			if plant != nil {
				plant(rank, &p)
			}
			p.BetaLo, p.BetaHi = p.Beta-0.002, p.Beta+0.002
			all = append(all, p)
		}
	}
	return all
}

func slowLoader(victim int) func(int, *pattern.Pattern) {
	return func(rank int, p *pattern.Pattern) {
		switch {
		case rank == victim && p.Function == loader:
			p.Beta, p.Mu, p.Wait = 0.2, 0.05, "read"
		case rank == victim && p.Function == wait:
			p.Beta = 0.05
		}
	}
}

func TestAPlantedWorkerIsFoundAtEverySizeAndNoise(t *testing.T) {
	for _, workers := range []int{3, 4, 7, 8, 64, 1000} {
		for _, noise := range []float64{0, 0.05, 0.15} {
			victim := workers / 2
			r := Compare(fleet{workers, noise, uint64(workers)}.patterns(slowLoader(victim)))
			if len(r.Findings) == 0 {
				t.Errorf("%d workers, noise %v: nothing", workers, noise)
				continue
			}
			f := r.Findings[0]
			if f.Kind != Special || f.Workers[0].Rank != int32(victim) || f.Pattern.Function != loader || f.Cause.Class != "storage" {
				t.Errorf("%d workers, noise %v: first is %+v", workers, noise, f)
			}
			for _, f := range r.Findings {
				if f.Kind == Special && f.Workers[0].Rank != int32(victim) {
					t.Errorf("%d workers, noise %v: %s", workers, noise, f.Sentence)
				}
			}
		}
	}
}

func TestHealthyWorkersAreNotAccused(t *testing.T) {
	for seed := range uint64(100) {
		for _, workers := range []int{2, 3, 4, 8, 64} {
			for _, f := range Compare(fleet{workers, 0.15, seed}.patterns(nil)).Findings {
				t.Errorf("seed %d, %d workers: %s", seed, workers, f.Sentence)
			}
		}
	}
}

func TestWhatMostWorkersHaveIsCommon(t *testing.T) {
	all := fleet{workers: 16, noise: 0.1}.patterns(nil)
	for rank := range int32(16) {
		all = append(all, pattern.Pattern{Host: fmt.Sprint("node", rank/8), PID: rank, Rank: rank, Function: sleeping, Class: pattern.Python,
			Name: "log (train.py)", File: "/train.py", Line: 9, Basis: pattern.Sampled, Resource: "cpu", Beta: 0.08, BetaLo: 0.079,
			BetaHi: 0.081, Wait: "clock_nanosleep", ObservedNS: 20e9})
	}
	r := Compare(all)
	if len(r.Findings) != 1 || r.Findings[0].Kind != Common || len(r.Findings[0].Workers) != 16 ||
		r.Findings[0].Cause.Name != "Python code that sleeps" {
		t.Errorf("%+v", r.Findings)
	}
}

// The one that waits least is the one that the others wait for.
func TestTheShortestWaitPointsAtTheCulprit(t *testing.T) {
	r := Compare(fleet{workers: 12, noise: 0.05}.patterns(func(rank int, p *pattern.Pattern) {
		if p.Function != wait {
			return
		}
		p.Beta *= 2
		if rank == 5 {
			p.Beta = 0.02
		}
	}))
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Kind == Special })
	if i < 0 || r.Findings[i].Workers[0].Rank != 5 || !r.Findings[i].Cause.Symptom || !strings.Contains(r.Findings[i].Sentence,
		"wait for it") {
		t.Errorf("%+v", r.Findings)
	}
}

func TestAStopAndANeighbourAreTheMachines(t *testing.T) {
	for name, class := range map[string]string{"preempted": "machine", "stopped": "machine"} {
		all := fleet{workers: 4, noise: 0.05}.patterns(nil)
		for rank := range int32(4) {
			p := pattern.Pattern{Host: "node0", PID: rank, Rank: rank, Function: 77, Class: pattern.Host, Name: name, Basis: pattern.Sampled,
				Resource: "cpu", Beta: 0.01, ObservedNS: 20e9}
			if rank == 2 {
				p.Beta = 0.4
			}
			all = append(all, p)
		}
		r := Compare(all)
		if len(r.Findings) != 1 || r.Findings[0].Workers[0].Rank != 2 || r.Findings[0].Cause.Class != class {
			t.Errorf("%s: %+v", name, r.Findings)
		}
	}
}

// What kept a worker from running is told by what else its patterns have.
func TestWhyAWorkerHadNoCPU(t *testing.T) {
	for _, c := range []struct {
		name            string
		throttled, more float64 // of the worker: what its quota took, -1 where that is not known; CPU time that its peers do not have
		preempted       float64
		cause           string
		symptom         bool
	}{
		{"others, as far as is known", -1, 0, 0.4, "other processes on its CPUs, or a CPU quota", false},
		{"others, and no quota", 0, 0, 0.4, "other processes on its CPUs: no quota", false},
		{"a quota", 0.3, 0, 0.4, "the CPU quota of its control group (cpu.max) of 0.2 CPUs, used up in 80 % of its periods", false},
		{"more to run", -1, 0.6, 0.2, "more to run than its peers", true},
		{"more to run, and others", -1, 0.3, 0.6, "other processes on its CPUs", false},
	} {
		all := fleet{workers: 4, noise: 0}.patterns(nil)
		add := func(rank int32, function uint64, class pattern.Class, name string, beta, mu float64) {
			all = append(all, pattern.Pattern{Host: "node0", PID: rank, Rank: rank, Function: function, Class: class, Name: name,
				Basis:    pattern.Sampled,
				Resource: "cpu", Beta: beta, BetaLo: beta, BetaHi: beta, Mu: mu, ObservedNS: 20e9})
		}
		read := func(rank int32, function uint64, name string, value float64) {
			all = append(all, pattern.Pattern{Host: "node0", PID: rank, Rank: rank, Function: function, Class: pattern.Host, Name: name,
				Basis: pattern.Read,
				Mu:    value, Beta: 1, BetaLo: 1, BetaHi: 1, ObservedNS: 20e9})
		}
		for rank := range int32(4) {
			share := 0.1
			if rank == 2 {
				share = c.preempted
				add(rank, 78, pattern.Compute, "aten::zeros", c.more, 1)
				if c.throttled >= 0 {
					add(rank, 79, pattern.Host, "throttled", c.throttled, 0)
				}
				if c.throttled > 0 {
					read(rank, 80, pattern.QuotaThrottles, 0.8)
					read(rank, 81, pattern.QuotaCPUs, 0.2)
				}
			}
			add(rank, 77, pattern.Host, "preempted", share, 0)
		}
		r := Compare(all)
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Pattern.Name == "preempted" })
		if i < 0 {
			t.Errorf("%s: not found", c.name)
		} else if f := r.Findings[i]; f.Workers[0].Rank != 2 || !strings.Contains(f.Sentence, c.cause) || f.Cause.Symptom != c.symptom {
			t.Errorf("%s: %s (%+v)", c.name, f.Sentence, f.Cause)
		}
		if c.more > 0 && !slices.ContainsFunc(r.Findings, func(f Finding) bool {
			return f.Pattern.Name == "aten::zeros" &&
				f.Cause.Class == "software"
		}) {
			t.Errorf("%s: the work that its peers do not have is not told", c.name)
		}
	}
}

func TestToBeKeptFromRunningLessIsNoFault(t *testing.T) {
	all := fleet{workers: 3, noise: 0}.patterns(nil)
	for rank, share := range []float64{0.3, 0.02, 0.3} {
		all = append(all, pattern.Pattern{Host: "node0", PID: int32(rank), Rank: int32(rank), Function: 77, Class: pattern.Host,
			Name:  "preempted",
			Basis: pattern.Sampled, Resource: "cpu", Beta: share, BetaLo: share, BetaHi: share, ObservedNS: 20e9})
	}
	for _, f := range Compare(all).Findings {
		t.Errorf("%s", f.Sentence)
	}
}

// Time without a stack says of no function that it is slow.
func TestWhatIsNotToldAccusesNobody(t *testing.T) {
	all := fleet{workers: 4, noise: 0}.patterns(nil)
	for rank := range int32(4) {
		p := pattern.Pattern{Host: "node0", PID: rank, Rank: rank, Function: 77, Class: pattern.Other, Name: "without a stack",
			Basis:    pattern.Sampled,
			Resource: "cpu", Beta: 0.01, ObservedNS: 20e9}
		if rank == 2 {
			p.Beta = 0.4
		}
		all = append(all, p)
	}
	if r := Compare(all); len(r.Findings) != 1 || !r.Findings[0].Cause.Symptom {
		t.Errorf("%+v", r.Findings)
	}
}

func TestTwoWorkersAreNotCompared(t *testing.T) {
	r := Compare(fleet{workers: 2, noise: 0.1}.patterns(slowLoader(1)))
	if r.Method != "none" || len(r.Notes) != 1 {
		t.Errorf("%+v", r)
	}
	for _, f := range r.Findings {
		if f.Kind == Special {
			t.Errorf("%s", f.Sentence)
		}
	}
}

func TestTheOrderOfRowsDoesNotMatter(t *testing.T) {
	all := fleet{workers: 200, noise: 0.2}.patterns(slowLoader(17))
	want := Compare(all)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if got := Compare(all); !reflect.DeepEqual(got, want) {
		t.Error("shuffled rows have another result")
	}
}

// Two windows of a worker are their mean by time, the same as one window of both.
func TestWindowsAreWeighedByTheirTime(t *testing.T) {
	base := pattern.Pattern{Host: "a", Rank: 0, Function: 1, Class: pattern.Python, Basis: pattern.Sampled, Resource: "cpu"}
	one, two := base, base
	one.BeginNS, one.ObservedNS, one.Beta, one.Mu, one.Sigma = 0, 30, 0.1, 1, 0
	two.BeginNS, two.ObservedNS, two.Beta, two.Mu, two.Sigma = 30, 10, 0.5, 0, 0
	p := arrange([]pattern.Pattern{one, two}).rows[key{1, pattern.Sampled}][0]
	// 3 of 30 and 5 of 10: 8 of 40. Of those 8, 3 ran.
	if math.Abs(p.Beta-0.2) > 1e-12 || math.Abs(p.Mu-3.0/8) > 1e-12 || math.Abs(p.Sigma-math.Sqrt(3.0/8*5/8)) > 1e-12 {
		t.Errorf("%+v", p)
	}
}

// PerfTracker's constants: 0.4, 5, 1 %.
func TestBoxesAreThoseOfTheDefinitions(t *testing.T) {
	for class, box := range map[pattern.Class]float64{pattern.Python: 0.01, pattern.Loader: 0.05, pattern.IO: 0.05, pattern.Copy: 0.1,
		pattern.Collective: 0.3} {
		at, above, far := pattern.Pattern{Class: class, Beta: box}, pattern.Pattern{Class: class, Beta: box * 1.5}, pattern.Pattern{Class: class,
			Beta: 1}
		if expectation(&at, 0) != 0 || math.Abs(expectation(&above, 0)-0.5) > 1e-9 || expectation(&far, 0) != 1 {
			t.Errorf("%s: %v, %v, %v", class, expectation(&at, 0), expectation(&above, 0), expectation(&far, 0))
		}
	}
	if d := expectation(&pattern.Pattern{Class: pattern.Compute, Beta: 1}, 0); d != 0 {
		t.Errorf("compute has an expectation: %v", d)
	}
	slow := pattern.Pattern{Class: pattern.Collective, Resource: "bytes_per_second", Mu: 25}
	if d := expectation(&slow, 100); d != 0.5 {
		t.Errorf("a quarter of the best throughput: %v", d)
	}
}

// BenchmarkTenThousandSyntheticWorkers has five planted workers, at several levels of noise
// on every share. It reports how many of them are found, how many others are accused, and
// whether what comes first is a planted one.
func BenchmarkTenThousandSyntheticWorkers(b *testing.B) {
	planted := map[int32]bool{7: true, 1234: true, 4711: true, 8000: true, 9999: true}
	for _, noise := range []float64{0, 0.05, 0.1, 0.15, 0.2, 0.25} {
		b.Run(fmt.Sprintf("noise=%.0f%%", 100*noise), func(b *testing.B) {
			all := fleet{workers: 10_000, noise: noise}.patterns(func(rank int, p *pattern.Pattern) {
				if planted[int32(rank)] {
					slowLoader(rank)(rank, p)
				}
			})
			for rank := range int32(10_000) { // functions that few share
				for k := range uint64(20) {
					all = append(all, pattern.Pattern{Host: fmt.Sprint("node", rank/8), PID: rank, Rank: rank, Function: 1000 + k + 20*uint64(rank%50),
						Class: pattern.Python, Name: "f", Basis: pattern.Sampled, Resource: "cpu", Beta: 0.005, ObservedNS: 20e9})
				}
			}
			var found Result
			for b.Loop() {
				found = Compare(all)
			}
			named, others, first := map[int32]bool{}, map[int32]bool{}, 0.0
			for i, f := range found.Findings {
				for _, w := range f.Workers {
					switch {
					case f.Kind != Special:
					case planted[w.Rank]:
						named[w.Rank] = true
						if i == 0 {
							first = 1
						}
					default:
						others[w.Rank] = true
					}
				}
			}
			b.ReportMetric(float64(len(named)), "found")
			b.ReportMetric(float64(len(others)), "accused")
			b.ReportMetric(first, "first")
		})
	}
}
