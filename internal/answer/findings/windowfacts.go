package findings

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
	"github.com/ebpfprof/ebpfprof/internal/answer/views"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/lint"
)

// The shares of the window from which on facts about devices are findings.
const (
	leastIdle    = 20 // percent of the window
	leastExposed = 10
	leastKernel  = 30 // percent of the busy time
	leastSmall   = 50 // percent of the launches
	fewLaunches  = 100
)

// addWindowFacts adds what devices did in the whole recording: too few steps, or none, leave these as answers. They are
// measured shares and no replay, so that they have no headroom.
func (r *Result) addWindowFacts(ctx context.Context, db *dataset.DB, rank *int) error {
	if _, err := lint.Run(ctx, db); err != nil {
		return err
	}
	where := "true"
	if rank != nil {
		where = fmt.Sprintf("(session_id, pid) IN (SELECT (session_id, pid) FROM process WHERE rank = %d)", *rank)
	}
	if err := db.Exec(ctx, "CREATE OR REPLACE TEMP VIEW finding_window AS SELECT * FROM good_span WHERE "+where); err != nil {
		return err
	}
	for _, fact := range []func(context.Context, *dataset.DB) ([]Finding, error){deviceShares, smallKernels, hotKernel} {
		found, err := fact(ctx, db)
		if err != nil {
			return fmt.Errorf("looking at the window: %w", err)
		}
		r.Findings = append(r.Findings, found...)
	}
	return nil
}

func fact(rule, title, name string, percent float64, pid int64, shown evidence.Evidence, advice string) Finding {
	return Finding{Rule: rule, Severity: Info, wording: title, Name: name, WindowPercent: &percent, PID: int(pid),
		EvidenceSQL: shown.SQL, Evidence: shown, Advice: advice}
}

// deviceShares are the idle time and what nothing hides, as means over devices.
func deviceShares(ctx context.Context, db *dataset.DB) (found []Finding, err error) {
	var pid, devices int64
	var total, idle, communication, copies sql.NullFloat64
	err = db.Row(ctx, `SELECT coalesce(min(pid), 0), count(*), sum(total), sum(idle), sum(exposed_communication), sum(exposed_copies)
		FROM (`+views.Sweep("finding_window", views.Windows(0, 0))+`) WHERE total > 0`, nil, &pid, &devices, &total, &idle, &communication,
		&copies)
	if err != nil || devices == 0 || total.Float64 <= 0 {
		return nil, err
	}
	share := func(v sql.NullFloat64) float64 { return 100 * v.Float64 / total.Float64 }
	device := "the device"
	if devices > 1 {
		device = fmt.Sprintf("each of the %d devices", devices)
	}
	if share(idle) >= leastIdle {
		f, err := idleFact(ctx, db, share(idle), pid, device)
		if err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	if share(copies) >= leastExposed {
		found = append(found, fact("exposed_copies", "copies that no computation hides", longestOf(ctx, db, "copy"), share(copies), pid,
			workSQL("copy"),
			fmt.Sprintf("For %.0f %% of the window %s does nothing but copy. Copy from pinned memory with non_blocking=True on a stream "+
				"of its own, "+
				"keep on the device what every step needs, and copy less.", share(copies), device)))
	}
	if share(communication) >= leastExposed {
		found = append(found, fact("exposed_communication", "communication that no computation hides", longestOf(ctx, db, "collective"),
			share(communication), pid,
			workSQL("collective"), fmt.Sprintf("For %.0f %% of the window %s does nothing but communicate. Overlap it with computation (buckets, "+
				"prefetch), "+
				"send less, or look for the rank that the others wait for.", share(communication), device)))
	}
	return found, nil
}

// idleFact says who leaves the devices idle.
func idleFact(ctx context.Context, db *dataset.DB, percent float64, pid int64, device string) (Finding, error) {
	title, why := "the device is idle", "No launches were recorded that show why."
	view, err := views.Build(ctx, db, "idle", views.Options{})
	if err == nil {
		why = view.Sentence
		var gaps, host float64
		for _, row := range view.Rows {
			gaps, host = gaps+number(row[2]), host+number(row[3])
		}
		if host > gaps/2 {
			title = "the device waits for the host"
			why += " The host does not launch fast enough: launch more at once (larger batches, captured graphs, torch.compile), and keep waits and Python out of the loop."
		}
	}
	window := "the window"
	covered, err := views.CoveredBy(ctx, db, nil)
	if text := covered.Text(); text != "" {
		window = text
	}
	if err != nil {
		return Finding{}, err
	}
	start, err := views.FromStart(ctx, db)
	if start {
		window = "the time from its first work to its last, with the job's start"
	}
	return fact("device_idle", title, device, percent, pid, evidence.Query(idleSQL), fmt.Sprintf("It is idle %.0f %% of %s. %s", percent,
		window, why)), err
}

func number(v any) float64 {
	if n, ok := v.(float64); ok {
		return n
	}
	return 0
}

const idleSQL = `SELECT device_id, stream, count(*) AS pieces, sum(duration_ns) / 1e6 AS work_ms,
	(max(ts_ns + duration_ns) - min(ts_ns)) / 1e6 AS window_ms
FROM span WHERE layer = 'device' AND duration_ns IS NOT NULL GROUP BY ALL ORDER BY work_ms DESC`

// workSQL is the evidence of device activity of a category.
func workSQL(category string) evidence.Evidence {
	where := fmt.Sprintf("layer = 'device' AND category = '%s'", category)
	return evidence.Query(fmt.Sprintf("SELECT name, count(*) AS calls, sum(duration_ns) / 1e6 AS device_ms, sum(bytes) AS bytes FROM span\n"+
		"WHERE %s GROUP BY name ORDER BY device_ms DESC LIMIT 20", where)).Rows("span", where)
}

func longestOf(ctx context.Context, db *dataset.DB, category string) (name string) {
	_ = db.Each(ctx, "SELECT name FROM finding_window WHERE layer = 'device' AND category = '"+category+
		"' GROUP BY name ORDER BY sum(duration_ns) DESC, name LIMIT 1", func(v []driver.Value) error {
		name, _ = v[0].(string)
		return nil
	})
	return name
}

// profiledNS is the time that merged traces cover of the processes in the window; NULL without one.
const profiledNS = `(SELECT sum(end_ns - ts_ns) FROM merged_trace WHERE ` + views.Partial + `
	AND (session_id, pid) IN (SELECT (session_id, pid) FROM finding_window))`

// smallKernels are kernels that take the device less than their launch takes the host. CUPTI has all kernels, and a
// recording in slices the launches of some: each stands for as many as its weight says.
func smallKernels(ctx context.Context, db *dataset.DB) ([]Finding, error) {
	var pid, launches, shorter int64
	var micros, percent sql.NullFloat64
	err := db.Row(ctx, `SELECT coalesce(min(d.pid), 0), count(*), count(*) FILTER (d.duration_ns < l.duration_ns), avg(d.duration_ns) / 1e3,
		100 * sum(l.duration_ns * CASE WHEN d.device_time_method = 'cupti' THEN greatest(l.weight, 1) ELSE 1 END) / coalesce(`+profiledNS+`,
			(SELECT greatest(max(ts_ns + duration_ns) - min(ts_ns), 1) FROM finding_window))
		FROM finding_window d JOIN finding_window l ON l.session_id = d.session_id AND l.span_id = d.launch_id
		WHERE d.layer = 'device' AND d.category = 'kernel' AND d.duration_ns IS NOT NULL
		AND l.duration_ns IS NOT NULL`, nil, &pid, &launches, &shorter, &micros, &percent)
	if err != nil || launches < fewLaunches || 100*shorter < leastSmall*launches {
		return nil, err
	}
	return []Finding{fact("small_kernels", "kernels shorter than their launch", fmt.Sprintf("%d kernels", launches), percent.Float64, pid,
		workSQL("kernel"),
		fmt.Sprintf("%d of %d kernels take the device less time than their launch takes the host; they last %.1f µs on average, and launching "+
			"takes %.0f %% of the window. Fuse them (torch.compile), capture graphs, or use larger batches.", shorter, launches, micros.Float64,
			percent.Float64))}, nil
}

// hotKernel is the kernel that most of the device time goes to.
func hotKernel(ctx context.Context, db *dataset.DB) (found []Finding, err error) {
	err = db.Each(ctx, `SELECT name, pid, count(*), sum(duration_ns)::DOUBLE, sum(sum(duration_ns)) OVER ()::DOUBLE,
		coalesce(`+profiledNS+`,
			max(max(ts_ns + duration_ns)) OVER () - min(min(ts_ns)) OVER ())::DOUBLE FROM finding_window
		WHERE layer = 'device' AND category = 'kernel' AND duration_ns IS NOT NULL GROUP BY ALL ORDER BY 4 DESC,
		1 LIMIT 1`, func(v []driver.Value) error {
		name, _ := v[0].(string)
		pid, _ := v[1].(int32)
		calls, _ := v[2].(int64)
		took, all, window := number(v[3]), number(v[4]), number(v[5])
		if all > 0 && window > 0 && 100*took >= leastKernel*all {
			found = append(found, fact("hot_kernel", "one kernel has most of the device's time", name, 100*took/window, int64(pid),
				workSQL("kernel"),
				fmt.Sprintf("It takes %.0f %% of the kernels' time, in %d calls.", 100*took/all, calls)))
		}
		return nil
	})
	return found, err
}
