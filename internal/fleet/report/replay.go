package report

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/whatif"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
)

// replay asks what slow workers cost. A step of a data-parallel job is, to the replay,
// a worker's own time and then one collective that ends when the last of them has
// come: what a worker did not wait for its peers is its own. Workers' steps begin at
// the anchor of each, which lies before the loader of one and behind that of another;
// the end of the collective is what they share, so that each row is put to one end, the
// first worker's: where in its period a worker's step began has no say.
func (r *Report) replay() {
	if len(r.steps) < 2 {
		return
	}
	trace := &whatif.Trace{}
	aligned := align(r.steps)
	for n, row := range aligned {
		end := float64(row[0].BeginNS+row[0].PeriodNS-r.BeginNS) / 1e9
		for w, s := range row {
			own, wait := float64(max(0, s.PeriodNS-s.WaitNS))/1e9, float64(s.WaitNS)/1e9
			op := whatif.Op{DPRank: w, Rank: int(s.Rank), Step: int64(n), Start: end - wait - own, Duration: own, Chunk: -1, GlobalChunk: -1,
				MicroBatch: -1}
			op.Type = whatif.ForwardCompute
			trace.Ops = append(trace.Ops, op)
			op.Type, op.Start, op.Duration = whatif.GradsReduceScatter, end-wait, wait
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
// began nearest to it, and leaves out those that some worker lacks. Two that differ by
// half a period may be paired with the neighbour of their own: the times of neighbours
// are alike, and left out they would be missing more often the longer a step is.
func align(steps [][]pattern.Step) (rows [][]pattern.Step) {
	next := make([]int, len(steps))
	for _, first := range steps[0] {
		row := []pattern.Step{first}
		for w := 1; w < len(steps); w++ {
			all := steps[w]
			for next[w]+1 < len(all) && distance(all[next[w]+1], first) <= distance(all[next[w]], first) {
				next[w]++
			}
			if s := all[next[w]]; distance(s, first) < first.PeriodNS {
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
