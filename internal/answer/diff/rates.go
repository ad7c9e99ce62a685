package diff

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// workOfASecond is what two recordings without steps are compared by. How long they are says nothing of the job: what
// it does again and again (operators, scopes, system calls of I/O, the CPU time of its functions) comes at some rate a
// second, and at a lower one when the same work takes longer.
const workOfASecond = "the work of a second"

const (
	ofFunction = "CPU time of "
	rateBlocks = 8 // equal parts of a recording whose rates give the noise
	leastKinds = 3 // that both recordings have
)

// rates are how many calls of each kind, or seconds of CPU time of each function, there were a second, in each of
// rateBlocks equal parts of a recording.
type rates map[string][]float64

// live reports whether the recording is of a running job: it was begun and ended at any moment. A trace that a program
// wrote of itself has the work that the program chose.
func live(ctx context.Context, db *dataset.DB) (live bool, err error) {
	err = db.Row(ctx, "SELECT coalesce(bool_and(source = 'recorded'), false) FROM session", nil, &live)
	return live, err
}

// bySeconds takes a recording as so many seconds of a running job.
func (s *Side) bySeconds(ctx context.Context, db *dataset.DB) (window, error) {
	var first, last sql.NullInt64
	// Samples cover all of a recording; without them what was recorded first and last.
	err := db.Row(ctx, `SELECT min(a), max(b) FROM (
		SELECT min(ts_ns) AS a, max(ts_ns) AS b FROM sample UNION ALL SELECT min(ts_ns), max(ts_ns + coalesce(duration_ns, 0))
		FROM good_span)`, nil, &first, &last)
	if err != nil || !first.Valid {
		return window{}, err
	}
	ns := float64(last.Int64 - first.Int64 + 1)
	s.What, s.Periods, s.rates = workOfASecond, []float64{1000}, rates{}
	if err := db.Row(ctx, "SELECT count(*)::DOUBLE FROM sample WHERE state = 'on_cpu'", nil, &s.samples); err != nil {
		return window{}, err
	}
	return window{from: math.MinInt64, until: math.MaxInt64, steps: ns / 1e9}, s.count(ctx, db, first.Int64, ns/rateBlocks)
}

// count fills in the rates. Rows of slices count with their weight: where slices are few, blocks differ and the noise
// shows it.
func (s *Side) count(ctx context.Context, db *dataset.DB, first int64, block float64) error {
	rows, err := db.Query(ctx, `SELECT kind, least(greatest(floor((ts_ns - ?) / ?)::BIGINT, 0), ?) AS block, sum(calls)::DOUBLE FROM (
			SELECT layer || ' ' || name AS kind, ts_ns, weight AS calls FROM good_span WHERE layer NOT IN ('device', 'io', 'wait')
			UNION ALL SELECT operation || ' of a ' || kind, ts_ns, calls FROM io WHERE operation IS NOT NULL AND kind IS NOT NULL
			UNION ALL SELECT '`+ofFunction+`' || p."function" || ' ' || regexp_replace(p.file, '.*/', ''), ts_ns, weight_ns / 1e9 FROM sample JOIN (
				SELECT DISTINCT ON (session_id, stack_id) session_id, stack_id, list_filter(frames, f -> f.kind = 'python')[1] AS p FROM stack)
			USING (session_id, stack_id) WHERE state = 'on_cpu' AND p IS NOT NULL AND p.file IS NOT NULL)
		GROUP BY ALL`, first, block, rateBlocks-1)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var kind string
		var n int
		var calls float64
		if err := rows.Scan(&kind, &n, &calls); err != nil {
			return err
		}
		if s.rates[kind] == nil {
			s.rates[kind] = make([]float64, rateBlocks)
		}
		s.rates[kind][n] = calls / (block / 1e9)
	}
	return rows.Err()
}

// rateChange is how much longer the same work takes by one kind of calls: the logarithm of the factor, and what it
// differs by at random.
type rateChange struct {
	kind       string
	log, noise float64
}

// changeOfRates compares the kinds of calls that both recordings have all along.
func changeOfRates(before, after *Side) (all []rateChange) {
	for kind, b := range before.rates {
		a := after.rates[kind]
		if !goesOn(b) || !goesOn(a) {
			continue
		}
		all = append(all, rateChange{kind, math.Log(steps.Mean(b) / steps.Mean(a)), math.Hypot(relativeError(b), relativeError(a))})
	}
	return all
}

// goesOn reports whether calls come in most parts of a recording, so that they have a rate.
func goesOn(perSecond []float64) bool {
	empty := 0
	for _, r := range perSecond {
		if r == 0 {
			empty++
		}
	}
	return len(perSecond) > 0 && 3*empty <= len(perSecond)
}

// relativeError is that of the mean, from the differences of neighbours: a job that slows down slowly is no noise.
func relativeError(perSecond []float64) float64 {
	squares := 0.0
	for i := 1; i < len(perSecond); i++ {
		d := perSecond[i] - perSecond[i-1]
		squares += d * d
	}
	k := float64(len(perSecond))
	return math.Sqrt(squares/(2*(k-1))/k) / steps.Mean(perSecond)
}

// sameWork is by what factor the work of a second takes longer: the median over kinds of calls, each of which counts
// once, so that one that was changed does not decide. Kinds whose rates are much less certain than others' do not count.
// Not ok where there are too few.
func sameWork(before, after *Side) (factor, noise float64, kinds int, ok bool) {
	all := changeOfRates(before, after)
	if len(all) < leastKinds {
		return 1, 0, len(all), false
	}
	slices.SortFunc(all, func(a, b rateChange) int { return cmp.Compare(a.noise, b.noise) })
	certain := all[:leastKinds]
	for len(certain) < len(all) && all[len(certain)].noise <= 2*certain[leastKinds-1].noise {
		certain = all[:len(certain)+1]
	}
	slices.SortFunc(certain, func(a, b rateChange) int { return cmp.Compare(a.log, b.log) })
	n := len(certain)
	median := (certain[(n-1)/2].log + certain[n/2].log) / 2
	var errors, apart []float64
	for _, c := range certain {
		errors, apart = append(errors, c.noise), append(apart, math.Abs(c.log-median))
	}
	slices.Sort(errors)
	slices.Sort(apart)
	// Calls of one job become rarer together, so that the median is no more certain than one of them; where they do not,
	// it is as uncertain as they disagree.
	one, disagree := errors[n/2], 1.4826*apart[n/2]*math.Sqrt(math.Pi/2/float64(n))
	return math.Exp(median), steps.Quantile(2*(rateBlocks-1)*(rateBlocks-1)/(3*rateBlocks-4)) * math.Hypot(one, disagree), n, true
}

// onTheSameWork scales the second side to the work that the first does in a second.
func (r *Result) onTheSameWork(before, after *Side) (b, a *Side) {
	factor, noise, kinds, ok := sameWork(before, after)
	if !ok {
		r.uneven = fmt.Sprintf("neither has steps, and only %d kinds of calls and functions go on all along in both, of %d that a rate "+
			"of work needs: mark the loop with torch.profiler.record_function or NVTX, or compare what report says of each", kinds, leastKinds)
		return before, after
	}
	scaled := *after
	scaled.Periods, scaled.PerStep = []float64{1000 * factor}, map[Key]float64{}
	for k, v := range after.PerStep {
		scaled.PerStep[k] = v * factor
	}
	r.rateNoise = 100 * noise * max(factor, 1/factor)
	r.rateKinds = kinds
	return before, &scaled
}

// joinRates makes the parts of all repeats the parts of one recording.
func (s *Side) joinRates() {
	joined := rates{}
	for i, repeat := range s.Repeats {
		for kind, perSecond := range repeat.rates {
			if joined[kind] == nil {
				joined[kind] = make([]float64, rateBlocks*len(s.Repeats))
			}
			copy(joined[kind][i*rateBlocks:], perSecond)
		}
	}
	s.samples = 0
	for _, repeat := range s.Repeats {
		s.samples += repeat.samples
	}
	s.rates, s.Periods, s.Repeats = joined, []float64{1000}, nil
}

// apartInShares is by how much the shares of CPU time of the functions differ (half the sum of the differences: the part
// of the time that one side spends elsewhere), and by how much they do at random. Functions of less than
// leastShare are one. Not ok without samples.
func apartInShares(before, after *Side) (apart, noise float64, ok bool) {
	type pair [2]float64
	var totals pair
	shares := map[string]*pair{}
	for side, s := range [2]*Side{before, after} {
		for kind, perSecond := range s.rates {
			if strings.HasPrefix(kind, ofFunction) {
				if shares[kind] == nil {
					shares[kind] = &pair{}
				}
				shares[kind][side] = steps.Mean(perSecond)
				totals[side] += steps.Mean(perSecond)
			}
		}
	}
	if min(totals[0], totals[1]) <= 0 || min(before.samples, after.samples) < leastSamples {
		return 0, 0, false
	}
	rest := pair{}
	add := func(p pair) {
		apart += math.Abs(p[0]-p[1]) / 2
		noise += math.Sqrt(2/math.Pi*(p[0]*(1-p[0])/before.samples+p[1]*(1-p[1])/after.samples)) / 2
	}
	for _, p := range shares {
		if p[0], p[1] = p[0]/totals[0], p[1]/totals[1]; max(p[0], p[1]) < leastShare {
			rest[0], rest[1] = rest[0]+p[0], rest[1]+p[1]
		} else {
			add(*p)
		}
	}
	add(rest)
	return apart, noise, true
}

const (
	leastShare   = 0.02
	leastSamples = 100
	mostApart    = 0.10 // noise of shares above which they say nothing
)

// spendAlike reports whether both sides spend their CPU time in the same functions, within --fail-on and the noise:
// then nothing that has a place in the code has become slower.
func (r *Result) spendAlike(before, after *Side) bool {
	apart, noise, ok := apartInShares(before, after)
	if !ok || noise > mostApart || apart > r.FailOnPercent/100+noise {
		return false
	}
	r.alikeText = fmt.Sprintf("both spend their CPU time in the same functions (shares differ by %.1f %%, at random by %.1f %%); how fast "+
		"the work goes "+
		"is not known better than to %.0f %%", 100*apart, 100*noise, r.NoisePercent)
	if r.uneven != "" {
		r.alikeText = fmt.Sprintf("both spend their CPU time in the same functions (shares differ by %.1f %%, at random by %.1f %%); how fast "+
			"the work goes "+
			"is not known: neither has steps", 100*apart, 100*noise)
	}
	return true
}
