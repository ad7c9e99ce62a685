package explain

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"regexp"
	"strings"
)

// nearLimit is which part of a limit memory fills to be near it.
const nearLimit = 0.9

// reclaiming are the kernel's functions that look for memory to give to the thread, or fetch its pages from swap.
var reclaiming = regexp.MustCompile(`^(try_to_free_(mem_cgroup_)?pages|shrink_(node|lruvec|folio_list|inactive_list|active_list|slab)|` +
	`mem_cgroup_handle_over_high|__alloc_pages_direct_(reclaim|compact)|do_swap_page|swap_read_folio|swapin_readahead|read_swap_cache_async|zswap_load)`)

// reclaims reports whether the kernel frees memory for the thread, or fetches its memory from swap.
func (s *Stack) reclaims() bool {
	for _, f := range s.Frames {
		if f.Kind != "kernel" {
			return false
		}
		if reclaiming.MatchString(f.Function) {
			return true
		}
	}
	return false
}

// memoryUse is how much memory without files is in use under a limit, bytes.
type memoryUse struct {
	used, limit, swapped float64
	what, setting        string
}

func (m memoryUse) part() float64 {
	if m.limit <= 0 {
		return 0
	}
	return m.used / m.limit
}

// fullest is the limit that memory without files fills most: a control group's, or the machine's. Page cache is left
// out, which the kernel gives up first.
func (r *Recording) fullest() (m memoryUse, err error) {
	var available, total, swapTotal, swapFree sql.NullFloat64
	err = r.db.Row(r.ctx, fmt.Sprintf(`SELECT (SELECT min(value) FROM %[1]s WHERE name = 'memory_available'),
		(SELECT max(value) FROM %[1]s WHERE name = 'memory_total'),
		(SELECT max(value) FROM %[1]s WHERE name = 'swap_total'), (SELECT min(value) FROM %[1]s WHERE name = 'swap_free')`, r.onHost("counter")),
		nil, &available, &total, &swapTotal, &swapFree)
	if err != nil {
		return m, err
	}
	if total.Valid && available.Valid {
		m = memoryUse{total.Float64 - available.Float64, total.Float64, max(0, swapTotal.Float64-swapFree.Float64),
			"the machine's memory", "the machine's memory, or its swap space"}
	}
	err = r.db.Each(r.ctx, `SELECT max(value) FILTER (name = 'cgroup_memory_limit'), max(value) FILTER (name = 'cgroup_memory_anonymous'),
			coalesce(max(value) FILTER (name = 'cgroup_memory_shared'), 0), coalesce(max(value) FILTER (name = 'cgroup_swap_used'), 0)
		FROM `+r.onHost("counter")+` WHERE source = 'cgroup' GROUP BY scope`, func(v []driver.Value) error {
		limit, _ := v[0].(float64)
		anonymous, known := v[1].(float64)
		shared, _ := v[2].(float64)
		swapped, _ := v[3].(float64)
		g := memoryUse{anonymous + shared, limit, swapped, "the control group's memory limit",
			"memory.max or memory.limit_in_bytes of the control group, resources.limits.memory in Kubernetes, --memory of a container"}
		if known && g.part() > m.part() {
			m = g
		}
		return nil
	})
	return m, err
}

// memoryPressure: the kernel takes the thread's time to free memory or to fetch it back from swap; or memory is so near a
// limit that it soon will.
func (r *Recording) memoryPressure() (found []Explanation, err error) {
	m, err := r.fullest()
	if err != nil {
		return nil, err
	}
	fromSwap, err := r.swapFaults()
	if err != nil {
		return nil, err
	}
	claims := map[int]float64{}
	for i := range r.Rows {
		switch row := &r.Rows[i]; {
		case row.Stack.reclaims():
			claims[i] = 1
		case row.Cause == "fault" && !row.OnCPU && fromSwap > 0:
			claims[i] = fromSwap
		}
	}
	figures := ""
	if m.limit > 0 {
		figures = fmt.Sprintf("%s of %s (%s) is in use without file caches", bytes(m.used), m.what, bytes(m.limit))
		if m.swapped > 0 {
			figures += fmt.Sprintf(", and %s is swapped out", bytes(m.swapped))
		}
		figures = strings.ToUpper(figures[:1]) + figures[1:] + "."
	}
	advice := "Hold less in memory (smaller batches, fewer or smaller caches, fewer loader workers), or raise the limit: " + m.setting + "."
	if r.share(claims) >= leastShare/2 {
		at := r.top(claims, innermost)
		e := Explanation{claims: claims, title: "memory pressure", Evidence: figures, Advice: advice}
		where := ""
		if at != nil {
			e.Place, where = at.place(), ", most of it at "+at.at()
		}
		how := "the kernel frees memory for the job"
		if fromSwap > 0 {
			how = "the kernel frees memory for the job or fetches it back from swap"
		}
		e.sentence = fmt.Sprintf("Memory is short: for %s of the time %s%s.", percent(r.share(claims)), how, where)
		return []Explanation{e}, nil
	}
	if m.part() >= nearLimit {
		found = append(found, Explanation{class: slowGrowth, title: "memory is near its limit", Advice: advice,
			sentence: fmt.Sprintf("Memory is near its limit: %s of %s (%s) without file caches.", percent(m.part()), m.what, bytes(m.limit))})
	}
	return found, nil
}

// swapFaults is which part of the process's major faults fetched memory from swap, and not from a file.
func (r *Recording) swapFaults() (float64, error) {
	var part sql.NullFloat64
	err := r.db.Row(r.ctx, `SELECT sum(calls) FILTER (kind = 'memory') / sum(calls)::DOUBLE FROM io
		WHERE pid = ? AND operation = 'fault' AND kind IS NOT NULL`,
		[]any{r.Pace.PID}, &part)
	return part.Float64, err
}

// failedWrites: the job's writes to files fail, as they do on a full disk.
func (r *Recording) failedWrites() (found []Explanation, err error) {
	err = r.db.Each(r.ctx, `SELECT coalesce(any_value(mount), ''), sum(failed)::BIGINT, sum(calls)::BIGINT FROM io
		WHERE operation IN ('write', 'sync') AND kind = 'file'
		GROUP BY device HAVING sum(failed) > 0 ORDER BY 2 DESC, 1 LIMIT 1`, func(v []driver.Value) error {
		on, check := "", "df and df -i"
		if mount := text(v[0]); mount != "" {
			on, check = " on "+mount, "df "+mount+" and df -i "+mount
		}
		found = append(found, Explanation{class: slowGrowth, title: "writes to files fail",
			sentence: fmt.Sprintf("%d of %d writes to files%s failed: the file system or a quota is full, or its device has errors.",
				integer(v[1]), integer(v[2]), on),
			Advice: "Check " + check + ", and whether checkpoints and logs are complete."})
		return nil
	})
	return found, err
}
