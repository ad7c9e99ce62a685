package explain

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"
)

// soon is in which time memory that grows must reach its limit to come before everything else, s.
const soon = 3600

// memory: it ran out, it grows, it is short, or files cannot be written.
func memory(r *Recording) (found []Explanation, err error) {
	for _, find := range []func() ([]Explanation, error){r.memoryGrowth, r.memoryPressure, r.failedWrites} {
		more, err := find()
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// memoryGrowth: memory ran out, or live bytes of a line grow from step to step.
func (r *Recording) memoryGrowth() (found []Explanation, err error) {
	if o := r.in.OutOfMemory; o != nil {
		sentence := o.Sentence()
		found = append(found, Explanation{class: outOfMemory, Explained: 1, title: "out of memory", Place: shortPlace(o.Line),
			sentence: strings.ToUpper(sentence[:1]) + sentence[1:] + ".",
			Advice:   "`ebpfprof memory` shows who held memory then: hold less at this line, or give the job more."})
	}
	limit, what, err := r.memoryLeft()
	if err != nil {
		return nil, err
	}
	if r.in.Memory == nil || r.in.StepMS <= 0 {
		return r.residentGrowth(found, limit, what)
	}
	for _, a := range r.in.Memory.Arenas {
		var rate float64 // bytes a step, of all lines that leak
		line, most := "", 0.0
		for _, g := range a.Growth {
			if g.Kind == "leak" && g.Confidence == "high" && g.BytesPerStepLo > 0 {
				rate += g.BytesPerStep
				if g.BytesPerStep > most {
					line, most = g.Line, g.BytesPerStep
				}
			}
		}
		if line == "" {
			continue
		}
		perSecond := rate / (r.in.StepMS / 1e3)
		grown, known, err := r.anonymousGrowth()
		if err != nil {
			return nil, err
		}
		if a.Space == "host" && known && grown < perSecond*r.Wall()/1e9/4 {
			continue // the recorder missed frees: resident memory does not grow so
		}
		place := shortPlace(line)
		e := Explanation{class: slowGrowth, Place: place, title: "memory grows"}
		e.sentence = fmt.Sprintf("Memory grows by %s a step (%s/s): what is allocated at %s is never freed.", bytes(rate),
			bytes(perSecond), place)
		e.Advice = "Something keeps these tensors, and with a loss its whole graph: keep numbers (loss.item(), .detach()) or drop old entries."
		if a.Space == "host" && limit > 0 && perSecond > 0 {
			left := limit / perSecond
			e.Evidence = fmt.Sprintf("At this rate %s is full in %s.", what, duration(left))
			if left < soon {
				e.class, e.Explained = outOfMemory, 1
			}
		} else if a.Space != "host" {
			e.class, e.Explained = outOfMemory, 1
		}
		found = append(found, e)
	}
	if len(found) == 0 {
		return r.residentGrowth(found, limit, what)
	}
	return found, nil
}

// residentGrowth: memory without file pages is larger in each tenth of the recording than in the one before, and the job
// touches new pages. The counter is the machine's, which other processes fill as well: this comes after all explanations of
// the time. What keeps the memory is not known, since no allocator's events show it.
func (r *Recording) residentGrowth(found []Explanation, limit float64, what string) ([]Explanation, error) {
	var rising, tenths sql.NullInt64
	var grown sql.NullFloat64
	err := r.db.Row(r.ctx, fmt.Sprintf(`WITH t AS (SELECT least(9, (ts_ns - %[1]d) * 10 // greatest(%[2]d - %[1]d, 1)) AS tenth,
		avg(value) AS v
			FROM %[3]s WHERE name = 'memory_anonymous' AND ts_ns BETWEEN %[1]d AND %[2]d GROUP BY 1),
		d AS (SELECT tenth, v, v - lag(v) OVER (ORDER BY tenth) AS rise FROM t)
		SELECT count(*) FILTER (rise > 0), count(rise), arg_max(v, tenth) - arg_min(v, tenth)
		FROM d`, r.From, r.Until, r.onHost("counter")), nil, &rising, &tenths, &grown)
	if err != nil || tenths.Int64 < 9 || rising.Int64 < tenths.Int64 || grown.Float64 <= 0 {
		return found, err
	}
	perSecond := grown.Float64 / (0.9 * r.Wall() / 1e9)
	claims := r.rows(func(row *Row) bool { return row.Stack.touches() })
	if r.share(claims) < 0.005 {
		return found, nil
	}
	e := Explanation{class: slowGrowth, title: "memory grows"}
	where := ""
	if at := r.top(claims, innermost); at != nil {
		e.Place = at.place()
		where = ", and new pages are touched most at " + at.at()
	}
	e.sentence = fmt.Sprintf("The machine's memory without files grows by %s/s over all of the recording%s.", bytes(perSecond), where)
	e.Advice = "Look for what is appended to and never dropped there: lists of results, caches without a limit."
	if limit > 0 {
		e.Evidence = fmt.Sprintf("At this rate %s is full in %s, if no other process takes its part.", what, duration(limit/perSecond))
	}
	return append(found, e), nil
}

// faulting are the kernel's functions that give a thread memory that it touches for the first time.
var faulting = regexp.MustCompile(
	"^(do_anonymous_page|alloc_anon_folio|clear_page|clear_huge_page|clear_subpage|folio_zero_user|do_huge_pmd_anonymous_page|vma_alloc_folio)")

// touches reports whether the kernel gives the thread a new page.
func (s *Stack) touches() bool {
	for _, f := range s.Frames {
		if f.Kind != "kernel" {
			return false
		}
		if faulting.MatchString(f.Function) {
			return true
		}
	}
	return false
}

// shortPlace makes "train.py:9 (train_step)" of a line with its whole path.
func shortPlace(line string) string {
	place, function, _ := strings.Cut(line, " ")
	if strings.Contains(function, "<module>") {
		function = ""
	}
	return strings.TrimSpace(base(place) + " " + function)
}

// memoryLeft is how many bytes the nearest limit leaves: the machine's, or the control group's where one was recorded.
func (r *Recording) memoryLeft() (left float64, what string, err error) {
	var available, group sql.NullFloat64
	err = r.db.Row(r.ctx, fmt.Sprintf(`SELECT (SELECT arg_max(value, ts_ns) FROM %[1]s WHERE name = 'memory_available'),
		(SELECT arg_max(l.value, l.ts_ns) - (SELECT arg_max(u.value, u.ts_ns) FROM %[1]s u WHERE u.name = 'cgroup_memory_used')
			FROM %[1]s l WHERE l.name = 'cgroup_memory_limit')`, r.onHost("counter")), nil, &available, &group)
	what = "the machine's memory"
	left = available.Float64
	if group.Valid && group.Float64 > 0 && (group.Float64 < left || !available.Valid) {
		left, what = group.Float64, "the control group's memory limit"
	}
	return left, what, err
}

// anonymousGrowth is by how much memory without files has grown over the recording, by the machine's counter.
func (r *Recording) anonymousGrowth() (grown float64, known bool, err error) {
	var v sql.NullFloat64
	err = r.db.Row(r.ctx, `SELECT max(last - first) FROM (SELECT arg_max(value, ts_ns) AS last, arg_min(value, ts_ns) AS first
		FROM `+r.onHost("counter")+` WHERE name IN ('memory_anonymous', 'cgroup_memory_anonymous') GROUP BY name, scope)`, nil, &v)
	return v.Float64, v.Valid, err
}

func bytes(n float64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", n/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", n/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.0f KiB", n/(1<<10))
	}
	return fmt.Sprintf("%.0f bytes", n)
}

func duration(seconds float64) string {
	switch {
	case seconds < 90:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 5400:
		return fmt.Sprintf("%.0f minutes", seconds/60)
	case seconds < 172800:
		return fmt.Sprintf("%.0f hours", seconds/3600)
	}
	return fmt.Sprintf("%.0f days", seconds/86400)
}
