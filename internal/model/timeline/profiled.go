package timeline

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// A trace of another profiler that was merged into a recording covers a part of it. In that time the job is slower, since
// both look at it, and only of that time are there points in time of what devices did.

// window is a time that a merged trace covers.
type window struct {
	from, until int64
	devices     bool // it has rows of devices
	within      bool // a library in the job handed it over, all the time: no step is without it
}

// profiled marks the steps that merged traces cover.
func profiled(ctx context.Context, db *dataset.DB, threads []Thread) error {
	windows := map[int][]window{}
	err := db.Each(ctx, "SELECT pid, ts_ns, end_ns, device_rows > 0, method = 'cupti' FROM merged_trace", func(v []driver.Value) error {
		pid, _ := v[0].(int32)
		var w window
		w.from, _ = v[1].(int64)
		w.until, _ = v[2].(int64)
		w.devices, _ = v[3].(bool)
		w.within, _ = v[4].(bool)
		windows[int(pid)] = append(windows[int(pid)], w)
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading merged traces: %w", err)
	}
	for i := range threads {
		of := windows[threads[i].PID]
		for k := range threads[i].Steps {
			s := &threads[i].Steps[k]
			s.Profiled = slices.ContainsFunc(of, func(w window) bool { return !w.within && s.Begin < w.until && s.Until() > w.from })
			s.Exact = slices.ContainsFunc(of, func(w window) bool { return w.devices && s.Begin >= w.from && s.Until() <= w.until })
		}
	}
	return nil
}

// Undisturbed are the steps in which no other profiler ran: those whose times are the job's. Where it ran in all, all are.
func Undisturbed(all []Step) []Step {
	left := slices.DeleteFunc(slices.Clone(all), func(s Step) bool { return s.Profiled })
	if len(left) == 0 {
		return all
	}
	return left
}
