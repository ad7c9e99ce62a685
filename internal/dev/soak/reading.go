package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dev/agentrun"
	"github.com/ebpfprof/ebpfprof/internal/record/mapfill"
)

// reading is what the tracer takes at one moment, by name.
type reading map[string]float64

// slack is how much each may grow from the second quarter of the time to the last
// and still count as flat: what comes and goes at any moment.
var slack = map[string]float64{"rss_mib": 32, "agent_rss_mib": 32, "descriptors": 64, "rotation_ms": 500, "agent_descriptors": 8,
	"worker_rss_mib": 64, "workers": 2, "spool_mb": 2, "metrics": 200}

// filled is what each holds once the tracer's caches have filled, as an hour of the soak shows
// (docs/overhead-appendix.md). They take more than a minute for it, and the longer the less time the
// machine has: what grows and has not come as far is not judged by its growth.
var filled = map[string]float64{"rss_mib": 560}

// otherSlack is that of the kernel's tables.
const otherSlack = 64

func read(pid int) (reading, error) {
	taken, err := agentrun.Of(pid)
	if err != nil {
		return nil, err
	}
	r := reading{"rss_mib": taken.RSS, "descriptors": taken.Descriptors}
	tables, err := mapfill.Of(pid)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		r[t.Name] = float64(t.Used)
	}
	return r, nil
}

// judge prints the most of each quarter of the time, and in brackets what half of its
// readings stayed below, by which it fails: a leak raises that too, what comes and goes
// on a busy machine does not.
func judge(w io.Writer, readings []reading) error {
	if len(readings) < 8 {
		return fmt.Errorf("%d readings are too few to judge by", len(readings))
	}
	quarter := func(i int, name string) (most float64) {
		for _, r := range readings[i*len(readings)/4 : (i+1)*len(readings)/4] {
			most = max(most, r[name])
		}
		return most
	}
	half := func(i int, name string) float64 {
		var all []float64
		for _, r := range readings[i*len(readings)/4 : (i+1)*len(readings)/4] {
			all = append(all, r[name])
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	var names, grown, filling []string
	for name := range readings[len(readings)-1] {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(w, "| at the most in each quarter (half of the time below) | 1 | 2 | 3 | 4 |\n|---|---:|---:|---:|---:|\n")
	for _, name := range names {
		fmt.Fprintf(w, "| %s |", strings.ReplaceAll(name, "_", " "))
		for i := range 4 {
			fmt.Fprintf(w, " %.0f (%.0f) |", quarter(i, name), half(i, name))
		}
		fmt.Fprintln(w)
		allowed, ok := slack[name]
		if !ok {
			allowed = otherSlack
		}
		switch last, before := half(3, name), half(1, name); {
		case last <= before*1.1+allowed:
		case last <= filled[name]:
			filling = append(filling, fmt.Sprintf("%s has grown from %.0f to %.0f, of the %.0f that full caches take: a longer soak tells more",
				name, before, last, filled[name]))
		default:
			grown = append(grown, fmt.Sprintf("%s from %.0f to %.0f", name, before, last))
		}
	}
	if len(filling) > 0 {
		fmt.Fprintln(w, "\n"+strings.Join(filling, "\n"))
	}
	if len(grown) == 0 {
		fmt.Fprintln(w, "\nflat")
	}
	if len(grown) > 0 {
		return fmt.Errorf("not flat: %s", strings.Join(grown, "; "))
	}
	return nil
}
