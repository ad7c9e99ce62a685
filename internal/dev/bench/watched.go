package main

import (
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/watched"
)

// measureWatched prints what recordings cost the jobs that do much of what is watched beside
// probes; the section of docs/overhead.md is written by hand, with what the machine did.
func measureWatched(s setup.Settings) error {
	if len(s.Interpreted) == 0 {
		return nil
	}
	python := s.Interpreted[len(s.Interpreted)-1].Path
	for _, job := range watched.Jobs {
		for _, level := range []string{"window", "anchor"} {
			for _, neighbour := range []bool{false, true} {
				r, err := watched.Measure(s, python, job, level, neighbour)
				if err != nil {
					return err
				}
				setup.Say("  %s, level %s, a neighbour %v: steps %.1f %% longer, %.1f %% more CPU time; the tracer %.1f %% of a CPU; pairs %.3f",
					r.Job, r.Level, r.Neighbour, 100*r.Slower, 100*r.More, 100*r.Own, r.Pairs)
			}
		}
	}
	return nil
}
