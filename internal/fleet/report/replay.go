package report

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/whatif"
)

// replay asks what slow workers cost. A step of a data-parallel job is, to the replay,
// a worker's own time and then one collective that ends when the last of them has
// come: what a worker did not wait for its peers is its own.
func (r *Report) replay() {
	if len(r.steps) < 2 {
		return
	}
	trace := &whatif.Trace{}
	aligned := align(r.steps)
	for n, row := range aligned {
		for w, s := range row {
			begin, own := float64(s.BeginNS-r.BeginNS)/1e9, float64(max(0, s.PeriodNS-s.WaitNS))/1e9
			op := whatif.Op{DPRank: w, Rank: int(s.Rank), Step: int64(n), Start: begin, Duration: own, Chunk: -1, GlobalChunk: -1, MicroBatch: -1}
			op.Type = whatif.ForwardCompute
			trace.Ops = append(trace.Ops, op)
			op.Type, op.Start, op.Duration = whatif.GradsReduceScatter, begin+own, float64(s.WaitNS)/1e9
			trace.Ops = append(trace.Ops, op)
		}
	}
	if len(aligned) == 0 {
		r.Notes = append(r.Notes, "the workers' steps do not line up in time: what a slow worker costs is not told")
		return
	}
	a, err := whatif.Analyse(trace, whatif.Meta{DPSize: len(r.steps), PPSize: 1, DSPSize: 1, TPSize: 1, VPPSize: 1})
	if err != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("what a slow worker costs is not told: %v", err))
		return
	}
	r.WhatIf = a
}

// align finds, for each step of the first worker, the step of every other one that
// began nearest to it, and leaves out those that some worker lacks.
func align(steps [][]pattern.Step) (rows [][]pattern.Step) {
	next := make([]int, len(steps))
	for _, first := range steps[0] {
		row := []pattern.Step{first}
		for w := 1; w < len(steps); w++ {
			all := steps[w]
			for next[w]+1 < len(all) && distance(all[next[w]+1], first) <= distance(all[next[w]], first) {
				next[w]++
			}
			if s := all[next[w]]; 2*distance(s, first) < first.PeriodNS {
				row = append(row, s)
			}
		}
		if len(row) == len(steps) {
			rows = append(rows, row)
		}
	}
	return rows
}

func distance(a, b pattern.Step) int64 {
	if a.BeginNS < b.BeginNS {
		return b.BeginNS - a.BeginNS
	}
	return a.BeginNS - b.BeginNS
}
