package dataset

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// simulatedSlice is a slice of one stratum: n whole steps of the l in its stretch.
type simulatedSlice struct {
	n, l  float64
	calls []float64 // of each step
	ns    []float64 // likewise
	timed bool      // n and l are of pieces of time
	each  float64   // what each row stands for; 0: l/n
}

// simulatedJob is a process with one operator, whose name is its own.
type simulatedJob struct {
	name   string
	late   int // its probe was put in for the slice of this number, from 0 on
	probes []simulatedProbe
	steps  int
	truth  float64
	slices []simulatedSlice
}

// simulatedProbe is one of several of a name.
type simulatedProbe struct {
	late int // as of a job
	hits int64
}

// callNS is how long a call of a simulated job takes, at the least.
const callNS = 1000

// simulate makes a job of steps whose calls have noise and a slow drift, recorded in
// slices of a few steps with pauses between them.
func simulate(random *rand.Rand, name string, steps int) simulatedJob {
	job := simulatedJob{name: name, steps: steps}
	calls := make([]float64, steps)
	drift, phase, noise := 1.5*random.Float64(), 2*math.Pi*random.Float64(), 0.5+1.5*random.Float64()
	for k := range calls {
		calls[k] = max(0, math.Round(8+drift*math.Sin(phase+2*math.Pi*float64(k)/float64(steps))+noise*random.NormFloat64()))
		job.truth += calls[k]
	}
	length := 2 + random.IntN(5)
	pause := length * (1 + random.IntN(6))
	type bounds struct{ on, off int }
	var cut []bounds
	for on := random.IntN(max(1, min(pause, steps-length))); on+length <= steps; on += length + pause {
		cut = append(cut, bounds{on, on + length})
	}
	from := 0
	for i, c := range cut {
		to := steps
		if i+1 < len(cut) {
			to = (c.off + cut[i+1].on) / 2
		}
		s := simulatedSlice{n: float64(c.off - c.on), l: float64(to - from), calls: calls[c.on:c.off]}
		for range s.calls {
			s.ns = append(s.ns, callNS*(1+random.Float64()))
		}
		job.slices = append(job.slices, s)
		from = to
	}
	return job
}

// writeSimulated makes a dataset of simulated jobs, a process each.
func writeSimulated(t *testing.T, jobs []simulatedJob) *DB {
	t.Helper()
	dir := t.TempDir()
	d, err := output.Create(dir, output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const start = 1_700_000_000_000_000_000
	err = d.Session(event.Recording{ID: "simulated", StartedNS: start})
	id := int64(0)
	for pid, job := range jobs {
		call := &event.Call{Layer: "op", Name: job.name}
		begin := int64(start)
		if job.late > 0 {
			err = errors.Join(err, d.Write(&event.Batch{Probes: []event.Probe{{PID: int32(pid + 1), Symbol: "f", Layer: "op", Name: job.name,
				Kind: "entry+exit", Attached: true, Hits: 1, FirstIn: begin + 1000*int64(job.late) - 10}}}))
		}
		for i, p := range job.probes {
			err = errors.Join(err, d.Write(&event.Batch{Probes: []event.Probe{{PID: int32(pid + 1), Symbol: fmt.Sprint("f", i), Layer: "op",
				Name: job.name, Kind: "entry+exit", Attached: true, Hits: p.hits, FirstIn: begin + 1000*int64(p.late) - 10}}}))
		}
		for _, s := range job.slices {
			id++
			unit, each := event.UnitSteps, s.l/s.n
			if s.timed {
				unit = event.UnitTime
			}
			if s.each > 0 {
				each = s.each
			}
			err = errors.Join(err, d.Write(&event.Batch{Slices: []event.Slice{{ID: id, PID: int32(pid + 1), Group: "op", BeginNS: begin,
				EndNS: begin + 10, FromNS: begin, ToNS: begin + 1000,
				Phase: event.PhaseTraining, Unit: unit, Recorded: s.n, Represented: s.l, Steps: int32(len(s.calls))}}}))
			var rows []event.Span
			for k, calls := range s.calls {
				for range int(calls) {
					rows = append(rows, event.Span{ID: 1, StartNS: begin + int64(k), DurationNS: int64(s.ns[k]), PID: int32(pid + 1), Call: call,
						Weight: each, SequenceNumber: -1, SliceID: id, SliceStep: int32(k + 1)})
				}
			}
			err = errors.Join(err, d.Write(&event.Batch{Spans: rows}))
			begin += 1000
		}
	}
	if err = errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	db, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// estimate is a row of operator_estimate.
type estimate struct {
	recorded, calls, lo float64
	hi                  sql.NullFloat64
	total, totalLo      float64
	totalHi             sql.NullFloat64
}

func estimates(t *testing.T, db *DB) map[string]estimate {
	t.Helper()
	rows, err := db.Query(context.Background(), "SELECT name, recorded, calls, calls_lo, calls_hi, total_ns, total_lo_ns, total_hi_ns FROM "+
		"operator_estimate")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]estimate{}
	for rows.Next() {
		var name string
		var e estimate
		if err := rows.Scan(&name, &e.recorded, &e.calls, &e.lo, &e.hi, &e.total, &e.totalLo, &e.totalHi); err != nil {
			t.Fatal(err)
		}
		if _, twice := all[name]; twice {
			t.Errorf("%s has two rows", name)
		}
		all[name] = e
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// quantile is the 0.975 quantile of Student's t, from its density.
func quantile(freedom float64) float64 {
	up, _ := math.Lgamma((freedom + 1) / 2)
	down, _ := math.Lgamma(freedom / 2)
	density := func(t float64) float64 {
		return math.Exp(up-down-(freedom+1)/2*math.Log1p(t*t/freedom)) / math.Sqrt(freedom*math.Pi)
	}
	low, high := 0.0, 20.0
	for range 50 {
		middle := (low + high) / 2
		const pieces = 2000
		sum, h := density(0)+density(middle), middle/pieces
		for i := 1; i < pieces; i++ {
			sum += float64(2+2*(i%2)) * density(float64(i)*h)
		}
		if sum*h/3 < 0.475 {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// half is the formula of docs/schema.md, said once more: half of the interval of the
// sums over the steps, and whether there is one.
func half(slices []simulatedSlice, sums func(simulatedSlice) []float64) (float64, bool) {
	m, pairs, between, within, spread := float64(len(slices)), 0.0, 0.0, 0.0, 0.0
	mean := func(s simulatedSlice) (sum float64) {
		for _, y := range sums(s) {
			sum += y / s.n
		}
		return sum
	}
	for j, s := range slices {
		y := sums(s)
		for k := 1; k < len(y); k++ {
			within += (y[k] - y[k-1]) * (y[k] - y[k-1])
		}
		pairs += s.n - 1
		if j > 0 {
			d := mean(s) - mean(slices[j-1])
			between += d * d / (1/s.n + 1/slices[j-1].n)
		}
		spread += s.l * s.l * (1 - s.n/s.l) / s.n
	}
	variance, freedom := 0.0, 0.0
	if m >= 2 {
		variance = between / (m - 1)
		freedom += 2 * (m - 1) * (m - 1) / (3*m - 4)
	}
	if wide := 1 + pairs; wide >= 2 {
		variance = max(variance, within/(2*pairs))
		freedom += 2 * (wide - 1) * (wide - 1) / (3*wide - 4)
	}
	if spread == 0 {
		return 0, true
	}
	if freedom == 0 {
		return 0, false
	}
	return quantile(freedom) * math.Sqrt(spread*variance), true
}

func near(a, b, relative float64) bool {
	return math.Abs(a-b) <= relative*max(math.Abs(a), math.Abs(b))+1e-9
}

// nearNS is near, of what the view rounds to nanoseconds.
func nearNS(a, b float64) bool { return math.Abs(a-b) <= 1 || near(a, b, 1e-4) }

func TestOperatorEstimateIsTheFormula(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var jobs []simulatedJob
	for i := range 60 {
		jobs = append(jobs, simulate(random, fmt.Sprintf("op %d", i), []int{8, 20, 60, 200}[i%4]))
	}
	all := estimates(t, writeSimulated(t, jobs))
	for _, job := range jobs {
		e := all[job.name]
		calls, seen, total, seenNS := 0.0, 0.0, 0.0, 0.0
		for _, s := range job.slices {
			for k, y := range s.calls {
				seen, calls = seen+y, calls+y*s.l/s.n
				seenNS, total = seenNS+y*math.Floor(s.ns[k]), total+y*math.Floor(s.ns[k])*s.l/s.n
			}
		}
		h, ok := half(job.slices, func(s simulatedSlice) []float64 { return s.calls })
		if e.recorded != seen || !near(e.calls, calls, 1e-9) || !ok || !e.hi.Valid || !near(e.hi.Float64, calls+h, 1e-4) ||
			!near(e.lo, max(seen, calls-h), 1e-4) {
			t.Errorf("%s, %d slices: %+v, want %g of %g ± %g", job.name, len(job.slices), e, seen, calls, h)
		}
		h, _ = half(job.slices, func(s simulatedSlice) (ns []float64) {
			for k, y := range s.calls {
				ns = append(ns, y*math.Floor(s.ns[k]))
			}
			return ns
		})
		if !nearNS(e.total, total) || !nearNS(e.totalHi.Float64, total+h) || !nearNS(e.totalLo, max(seenNS, total-h)) {
			t.Errorf("%s: %+v, want %g of %g ± %g ns", job.name, e, seenNS, total, h)
		}
	}
}

// slicedJob is a process and one slice of it that is as wide as its steps say.
func slicedJob(name string, n, l float64, calls ...float64) simulatedJob {
	s := simulatedSlice{n: n, l: l, calls: calls}
	for range calls {
		s.ns = append(s.ns, callNS)
	}
	return simulatedJob{name: name, slices: []simulatedSlice{s}}
}

func TestEstimatesSayWhatTheyCannotTell(t *testing.T) {
	unseen := slicedJob("a stretch that no slice saw", 2, 10, 4, 4)
	unseen.slices = append(unseen.slices, simulatedSlice{n: 0, l: 20})
	late := slicedJob("called from the second slice on", 1, 2, 0)
	late.late = 1
	late.slices = append(late.slices, slicedJob("", 2, 10, 7, 7).slices...)
	early := late
	early.name, early.late = "in both slices, called in the second", 0
	all := estimates(t, writeSimulated(t, []simulatedJob{
		late, early,
		slicedJob("one step in one slice", 1, 10, 7),
		slicedJob("all of it", 2, 2, 7, 9),
		slicedJob("alike", 2, 10, 7, 7),
		unseen,
		slicedJob("two processes", 2, 10, 5, 7), slicedJob("two processes", 2, 20, 8, 7),
	}))
	for name, want := range map[string]estimate{
		"one step in one slice":           {recorded: 7, calls: 70, lo: 7},
		"all of it":                       {recorded: 16, calls: 16, lo: 16, hi: sql.NullFloat64{Float64: 16, Valid: true}},
		"alike":                           {recorded: 14, calls: 70, lo: 70, hi: sql.NullFloat64{Float64: 70, Valid: true}},
		"a stretch that no slice saw":     {recorded: 8, calls: 40, lo: 8},
		"called from the second slice on": {recorded: 14, calls: 70, lo: 70, hi: sql.NullFloat64{Float64: 70, Valid: true}},
	} {
		got := all[name]
		got.total, got.totalLo, got.totalHi = 0, 0, sql.NullFloat64{}
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if e := all["in both slices, called in the second"]; !e.hi.Valid || e.hi.Float64 < 80 {
		t.Errorf("a slice that saw none of a name that it could see: %+v, want a wide interval", e)
	}
	// V = 100 (1 - 2/10) 2/2 + 400 (1 - 2/20) 0.5/2 = 80 + 90, with one degree of
	// freedom each: by Welch and Satterthwaite 170^2 / (80^2 + 90^2) of both together.
	h := math.Sqrt(170) * quantile(170*170/(80.0*80+90*90))
	if e := all["two processes"]; e.calls != 60+150 || !near(e.hi.Float64, 210+h, 1e-4) || !near(e.lo, max(27, 210-h), 1e-4) {
		t.Errorf("two processes: %+v, want 210 ± %g", e, h)
	}
}

// TestASliceTellsOfANameWhereAllItsProbesAreIn: an operator has a probe for each of its
// overloads, and what is in for some of them only is no step without the others. A probe that
// is hardly ever hit takes no slice away.
func TestASliceTellsOfANameWhereAllItsProbesAreIn(t *testing.T) {
	job := func(name string, first float64, probes ...simulatedProbe) simulatedJob {
		j := slicedJob(name, 2, 20, first, first)
		j.slices = append(j.slices, slicedJob("", 2, 20, 33, 33).slices[0], slicedJob("", 2, 20, 33, 33).slices[0])
		j.probes = probes
		return j
	}
	endsInOneStep := job("one step after the last probe", 33, simulatedProbe{0, 1}, simulatedProbe{2, 199})
	endsInOneStep.slices[2] = slicedJob("", 1, 20, 33).slices[0]
	all := estimates(t, writeSimulated(t, []simulatedJob{
		job("most of it late", 1, simulatedProbe{0, 6}, simulatedProbe{1, 128}),
		job("a little of it late", 32, simulatedProbe{0, 192}, simulatedProbe{2, 2}),
		job("nothing late", 1, simulatedProbe{0, 134}),
		// The job came by an overload of the name at the end, which another phase calls.
		endsInOneStep,
	}))
	if e := all["most of it late"]; e.calls != 20*(1+33+33) || e.recorded != 2*(1+33+33) || !near(e.lo, e.calls, 1e-9) ||
		!near(e.hi.Float64, e.calls, 1e-9) {
		t.Errorf("most of it late: %+v, want an interval of no width: the slices that saw all are alike", e)
	}
	// The first slice is one of the three: from 32 to 33 is a difference that counts.
	if e := all["a little of it late"]; e.calls != 20*(32+33+33) || e.hi.Float64 < e.calls+10 || e.hi.Float64 > e.calls+100 {
		t.Errorf("a little of it late: %+v, want a narrow interval that has a width", e)
	}
	if e := all["one step after the last probe"]; !e.hi.Valid || !near(e.hi.Float64, e.calls, 1e-9) {
		t.Errorf("one step after the last probe: %+v, want an interval: one step tells no variance, the slices before it do", e)
	}
	if e := all["nothing late"]; e.hi.Float64 < e.calls+500 {
		t.Errorf("nothing late: %+v, want a wide interval: the job called it less at first", e)
	}
}

// The rows of a slice that cut steps may stand for less than its whole steps do: the steps are
// as they are, and the interval reaches as far as they.
func TestAStepIsAsLongAsItWas(t *testing.T) {
	short, long := simulatedSlice{n: 1, l: 1, calls: []float64{8}, ns: []float64{callNS}}, slicedJob("", 4, 20, 8, 8, 8, 8).slices[0]
	short.n, short.l = 1.25, 2
	all := estimates(t, writeSimulated(t, []simulatedJob{{name: "alike", slices: []simulatedSlice{short, long}}}))
	// The weights say 12.8 calls of the two steps, where whole ones have 16.
	if e := all["alike"]; !near(e.calls, 172.8, 1e-9) || !near(e.hi.Float64, 176, 1e-9) || !near(e.lo, 169.6, 1e-9) {
		t.Errorf("%+v, want 172.8 ± 3.2: the steps are all alike", e)
	}
}

// A job's first step, which has no momentum yet, was recorded whole: it stands for itself, and
// the others are alike.
func TestWhatStandsForItselfTellsNothingOfTheRest(t *testing.T) {
	start := func(name string, n, l float64) simulatedJob {
		job := slicedJob(name, n, l, 0)
		job.slices = append(job.slices, slicedJob("", 3, 58, 32, 32, 32).slices...)
		return job
	}
	few := slicedJob("one step besides", 1, 1, 0)
	few.slices = append(few.slices, slicedJob("", 1, 58, 32).slices...)
	all := estimates(t, writeSimulated(t, []simulatedJob{start("whole", 1.5, 2), start("one of three", 1, 3), few}))
	if e := all["whole"]; !near(e.calls, 58*32, 1e-9) || !near(e.lo, e.calls, 1e-9) || !near(e.hi.Float64, e.calls, 1e-9) {
		t.Errorf("a first step recorded whole: %+v, want the steps behind it to be alike", e)
	}
	// Of the first three steps two were not seen: they may be like the first, or like the others.
	if e := all["one of three"]; !e.hi.Valid || e.hi.Float64 < 1.5*e.calls {
		t.Errorf("one of the first three steps: %+v, want a wide interval", e)
	}
	if e := all["one step besides"]; !e.hi.Valid || e.hi.Float64 < 1.5*e.calls {
		t.Errorf("one step besides: %+v, want a wide interval: nothing but the first step tells how steps differ", e)
	}
}

// What an evaluation calls is first called in the middle of a run. The rows stand for what was
// since then, and not for all the time that the slice stands for.
func TestRowsOfALateProbeStandForTheTimeSinceThen(t *testing.T) {
	piece := simulatedSlice{n: 10, l: 71, timed: true, each: 1.3}
	for range 10 {
		piece.calls, piece.ns = append(piece.calls, 16), append(piece.ns, callNS)
	}
	job := simulatedJob{name: "late", late: 1, slices: []simulatedSlice{{n: 10, l: 20, timed: true, calls: make([]float64, 10),
		ns: make([]float64, 10)}, piece}}
	steps := slicedJob("late in steps", 2, 2, 0, 0)
	steps.late = 1
	later := slicedJob("", 2, 8, 4, 4).slices[0]
	later.each = 5 // of the two steps before, which had no probe, as well
	steps.slices = append(steps.slices, later)
	all := estimates(t, writeSimulated(t, []simulatedJob{job, steps}))
	// Its pieces are alike, and the pauses, of three of them, may be of another kind.
	if e := all["late"]; !near(e.calls, 160*1.3, 1e-9) || e.hi.Float64 > 160*1.6 || e.hi.Float64 < 160*1.4 {
		t.Errorf("%+v, want %v, and 48 more or less at the most", e, 160*1.3)
	}
	// It may have begun to call it in either of the two steps that no probe saw.
	if e := all["late in steps"]; !near(e.calls, 40, 1e-9) || !near(e.hi.Float64, 44, 1e-9) || !near(e.lo, 36, 1e-9) {
		t.Errorf("%+v, want 40 ± 4: its steps are alike", e)
	}
}

// The values of tables of Student's distribution.
func TestTheQuantileOfTheTestsIsStudents(t *testing.T) {
	for freedom, want := range map[float64]float64{1: 12.7062, 2: 4.30265, 3: 3.18245, 5: 2.57058, 10: 2.22814, 30: 2.04227, 120: 1.97993} {
		if got := quantile(freedom); !near(got, want, 1e-5) {
			t.Errorf("t(0.975, %g) = %g, want %g", freedom, got, want)
		}
	}
}

// A recording of before there were slices, or without a budget.
func TestRowsOfNoSliceAreCountedAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	d, err := output.Create(dir, output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	row := func(name string, weight float64) event.Span {
		return event.Span{ID: 1, StartNS: 1, DurationNS: 5, PID: 1, Call: &event.Call{Layer: "op", Name: name}, Weight: weight,
			SequenceNumber: -1}
	}
	rows := []event.Span{row("exact", 1), row("exact", 1), row("weighed", 2.5), row("weighed", 1)}
	if err = errors.Join(d.Session(event.Recording{ID: "s"}), d.Write(&event.Batch{Spans: rows}), d.Close()); err != nil {
		t.Fatal(err)
	}
	db, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	want := map[string]estimate{
		"exact":   {2, 2, 2, sql.NullFloat64{Float64: 2, Valid: true}, 10, 10, sql.NullFloat64{Float64: 10, Valid: true}},
		"weighed": {2, 3.5, 2, sql.NullFloat64{}, 18, 10, sql.NullFloat64{}},
	}
	for name, got := range estimates(t, db) {
		if got != want[name] {
			t.Errorf("%s: %+v, want %+v", name, got, want[name])
		}
	}
}
