package report

import (
	"cmp"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// Time that is unlike a step and that no slice covered, such as an evaluation between two slices, is a stratum of its own:
// of its calls samples alone tell. It is what follows a step for long, before the first step and after the last, and steps
// much slower than all that slices saw.

// gap is a piece of that time, ns.
type gap struct{ from, until int64 }

// mostStretches bounds how many pieces queries look into: the longest.
const mostStretches = 500

// unlike is from when on a time between steps, or a step, is no step like the others: by how much it must exceed a step.
const unlike = 1.5

// unseenStretches are the pieces of the training thread's time.
func unseenStretches(list []timeline.Step, sliced []gap, from, until int64) (found []gap) {
	var periods, durations []float64
	for _, s := range list {
		if s.Period > 0 {
			periods, durations = append(periods, float64(s.Period)), append(durations, float64(s.End-s.Begin))
		}
	}
	if len(periods) < 3 {
		return nil
	}
	period, duration := steps.Median(periods), steps.Median(durations)
	add := func(from, until int64) {
		if float64(until-from) < (unlike-1)*period || slices.ContainsFunc(sliced, func(s gap) bool { return s.from < until && s.until > from }) {
			return
		}
		found = append(found, gap{from, until})
	}
	add(from, list[0].Begin)
	for i, s := range list {
		next := s.Begin + s.Period
		if s.Period <= 0 {
			if i+1 < len(list) {
				continue
			}
			next = until
		}
		switch {
		case float64(next-s.Begin) <= unlike*period:
		case float64(s.End-s.Begin) <= unlike*duration:
			add(s.End, next) // what follows it
		default:
			add(s.Begin, next)
		}
	}
	slices.SortFunc(found, func(a, b gap) int {
		return cmp.Or(cmp.Compare(b.until-b.from, a.until-a.from), cmp.Compare(a.from, b.from))
	})
	return found[:min(len(found), mostStretches)]
}

// countUnseen adds to the operators' calls what samples tell of time that no slice covered.
func (b *builder) countUnseen() error {
	shares := b.report.Shares
	if !b.weighted || shares == nil || shares.PeriodNS <= 0 || len(b.loops) == 0 {
		return nil
	}
	thread := findings.Looked(b.loops)
	var sliced []gap
	err := b.each(fmt.Sprintf("SELECT begin_ns, end_ns FROM slice WHERE pid = %d AND recorded > 0", thread.PID), func(scan scan) error {
		var s gap
		err := scan(&s.from, &s.until)
		sliced = append(sliced, s)
		return err
	})
	if err != nil || len(sliced) == 0 {
		return err
	}
	var from, until sql.NullInt64
	err = b.db.Row(b.ctx, "SELECT min(ts_ns), max(ts_ns + weight_ns) FROM sample WHERE pid = ? AND tid = ?",
		[]any{thread.PID, thread.TID}, &from, &until)
	if err != nil || !from.Valid {
		return err
	}
	found := unseenStretches(thread.Steps, sliced, from.Int64, until.Int64)
	if len(found) == 0 {
		return nil
	}
	values, length := make([]string, len(found)), 0.0
	for i, s := range found {
		values[i] = fmt.Sprintf("(%d,%d)", s.from, s.until)
		length += float64(s.until - s.from)
	}
	return b.unseenCalls(thread.PID, strings.Join(values, ","), length)
}

// unseenCalls reads how many samples of the process fall into the pieces, by operator, and how long its calls take.
func (b *builder) unseenCalls(pid int, pieces string, length float64) error {
	at := map[string]*Operator{}
	for i := range b.report.Operators {
		if o := &b.report.Operators[i]; o.Layer == "op" && o.Estimated {
			at[o.Name] = o
		}
	}
	unknown := []string{}
	err := b.each(fmt.Sprintf(`
		WITH pieces (from_ns, until_ns) AS (VALUES %s),
		seen AS (SELECT stack_id, count(*) AS n FROM sample s JOIN pieces p ON s.ts_ns >= p.from_ns AND s.ts_ns < p.until_ns
			WHERE s.pid = %d AND s.state = 'on_cpu' AND stack_id IS NOT NULL GROUP BY stack_id),
		hit AS (SELECT name, sum(n)::BIGINT AS k FROM (
			SELECT n, unnest(list_distinct(list_transform(list_filter(frames, lambda f: f.kind = 'op'), lambda f: f."function"))) AS name
			FROM seen JOIN stack USING (stack_id)) GROUP BY name),
		took AS (SELECT name, avg(duration_ns) AS mean, quantile_cont(duration_ns, 0.05) AS short,
			quantile_cont(duration_ns, 0.95) AS long, min(duration_ns) AS shortest
			FROM span WHERE pid = %d AND layer = 'op' AND duration_ns > 0 GROUP BY name)
		SELECT name, coalesce(k, 0), mean, short, long, shortest FROM hit FULL JOIN took USING (name)
		WHERE name IS NOT NULL ORDER BY name`, pieces, pid, pid), func(scan scan) error {
		var name string
		var k int64
		var mean, short, long, shortest sql.NullFloat64
		if err := scan(&name, &k, &mean, &short, &long, &shortest); err != nil {
			return err
		}
		switch o := at[name]; {
		case o != nil && mean.Valid:
			o.addUnseen(float64(k), b.report.Shares.PeriodNS, length, mean.Float64, short.Float64, long.Float64, shortest.Float64)
		case o == nil && !mean.Valid:
			unknown = append(unknown, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.report.UnseenMS = length / 1e6
	b.report.UnseenOperators = unknown
	return nil
}

// addUnseen adds the calls of a time that no slice covered: k samples hit the operator there, each of which stands for a
// period, and the durations of its calls are those of the rows elsewhere.
func (o *Operator) addUnseen(k, period, length, mean, short, long, shortest float64) {
	lo, hi := poissonLimits(k)
	o.Calls += k * period / mean
	if o.CallsLo != nil {
		*o.CallsLo += lo * period / max(long, mean) // of a few very long calls the mean is above the quantile
	}
	if o.CallsHi != nil {
		*o.CallsHi += max(min(hi*period/min(short, mean), length/shortest), k*period/mean)
	}
}

// poissonLimits are the exact 95 % limits of the mean of a Poisson distribution of which k was drawn.
func poissonLimits(k float64) (lo, hi float64) {
	// tail is the probability of at most n of a mean.
	tail := func(n, mean float64) (p float64) {
		term := math.Exp(-mean)
		for i := 0.0; i <= n; i++ {
			p += term
			term *= mean / (i + 1)
		}
		return p
	}
	if k > 500 { // exp(-mean) would be 0: Wilson and Hilferty's approximation, to 1e-4 of itself here
		cube := func(n, z float64) float64 { return n * math.Pow(1-1/(9*n)+z/(3*math.Sqrt(n)), 3) }
		return cube(k, -1.959964), cube(k+1, 1.959964)
	}
	solve := func(n, target float64) float64 {
		a, b := 0.0, k+6*math.Sqrt(k+1)+6
		for range 60 {
			if m := (a + b) / 2; tail(n, m) > target {
				a = m
			} else {
				b = m
			}
		}
		return (a + b) / 2
	}
	if k > 0 {
		lo = solve(k-1, 0.975)
	}
	return lo, solve(k, 0.025)
}
