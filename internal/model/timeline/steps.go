// Package timeline is what a dataset says happened on the threads of a job: the
// steps of each process, the spans of a step, and the step as a graph that can be
// replayed. It turns rows into the plain values that internal/model/steps and
// internal/model/graph work on.
package timeline

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// Thread is a thread that makes steps: at most one of each process.
type Thread struct {
	PID, TID int
	Rank     *int // nil where the recording has none
	Steps    []Step
	// Loop is how the steps were found where neither the job's own marks nor the calls of a training loop are; nil otherwise.
	Loop *steps.Loop
	// Unit is what a step is, in its user's words, such as "decoding step"; Trains tells whether its process trains.
	Unit   string
	Trains bool
	// Works: the process calls operators or gives work to devices; one that only writes ranges does not.
	Works bool
	// InSlices: detail was recorded in slices, so that a step that none touches has no probes of it.
	InSlices bool
}

// Step is a step of a thread.
type Step struct {
	steps.Step
	Name string // of a stretch that is no step: a scope's, or "the recording"
	ID   int64  // numbers the steps of the recording from 0
	// Whole: every row of the step was recorded. In recordings by slices the
	// steps between slices have their anchors and little else.
	Whole bool
	// Sliced: a slice touches it, so that probes of detail made it longer.
	Sliced bool
	// Profiled: another profiler, whose trace was merged, ran in some of it; Exact: in all of it, and recorded devices.
	Profiled, Exact bool
	// Weight is for how many steps it stands: more than one where what tells steps is
	// itself recorded in slices.
	Weight float64
}

// OfRank are the threads of a rank.
func OfRank(threads []Thread, rank int) []Thread {
	return slices.DeleteFunc(slices.Clone(threads), func(t Thread) bool { return t.Rank == nil || *t.Rank != rank })
}

// Until is where the step's period ends: its own end where nothing follows.
func (s Step) Until() int64 {
	if s.Period < 0 {
		return s.End
	}
	return s.Begin + s.Period
}

// Training are the steps that speak for the loop: whole or not, without warm-up and without those of another profiler.
func (t Thread) Training() (all []Step) {
	for _, s := range t.Steps {
		if s.Kind == steps.Train && s.Period >= 0 {
			all = append(all, s)
		}
	}
	return Undisturbed(all)
}

// Of are the steps of a kind.
func (t Thread) Of(kinds ...steps.Kind) (all []Step) {
	for _, s := range t.Steps {
		for _, k := range kinds {
			if s.Kind == k {
				all = append(all, s)
			}
		}
	}
	return all
}

// anchorSQL are the calls that steps are found by, a class each.
const anchorSQL = `
SELECT span.pid, span.tid, ts_ns, ts_ns + coalesce(duration_ns, 0) AS end_ns, name, weight,
  coalesce(slice.begin_ns, 0) AS slice_begin, coalesce(slice.end_ns, 0) AS slice_end,
  CASE
    WHEN layer = 'scope' AND name LIKE 'enumerate(DataLoader)#%' THEN 'L'
    WHEN layer = 'scope' AND name LIKE 'Optimizer.step#%' THEN 'O'
    WHEN layer = 'autograd' AND category = 'backward' THEN 'B'
    WHEN runtime IN ('pjrt', 'neuron') AND category = 'launch' THEN 'X'
    WHEN layer = 'collective' AND category IN ('collective', 'issue') THEN 'C'
    WHEN layer = 'scope' AND name LIKE 'ProfilerStep#%' THEN 'P'
  END AS class
FROM span LEFT JOIN slice USING (session_id, slice_id)
WHERE layer IN ('scope', 'collective') OR layer = 'autograd' AND category = 'backward'
  OR layer = 'runtime' AND runtime IN ('pjrt', 'neuron') AND category = 'launch'
ORDER BY span.pid, span.tid, ts_ns`

// annotated is the class of the marks that a profiler's user sets.
const annotated steps.Class = 'P'

// Steps finds the steps of every process of the dataset. It leaves the table
// timeline_step in memory for queries: step_id, pid, tid, kind, number, begin_ns,
// end_ns, until_ns (where its period ends), whole, weight (for how many it stands).
func Steps(ctx context.Context, db *dataset.DB) ([]Thread, error) {
	byThread, order, err := anchors(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("finding steps: %w", err)
	}
	if order, err = working(ctx, db, order); err != nil {
		return nil, fmt.Errorf("finding steps: %w", err)
	}
	var all []Thread
	for _, pid := range order {
		thread, found := best(byThread[pid])
		if found = thread.cut(found); !loops(found) {
			continue
		}
		t := Thread{PID: pid, TID: thread.tid}
		for _, s := range found {
			t.Steps = append(t.Steps, Step{Step: s, Whole: true, Weight: thread.weight(s)})
		}
		all = append(all, t)
	}
	if all, err = anyLoops(ctx, db, all); err != nil {
		return nil, fmt.Errorf("finding steps: %w", err)
	}
	var id int64
	for i := range all {
		for k := range all[i].Steps {
			all[i].Steps[k].ID = id
			id++
		}
	}
	if err := ranks(ctx, db, all); err != nil {
		return nil, fmt.Errorf("finding steps: %w", err)
	}
	if err := keep(ctx, db, all); err != nil {
		return nil, fmt.Errorf("finding steps: %w", err)
	}
	counts, err := countOperators(ctx, db, all)
	if err != nil {
		return nil, fmt.Errorf("finding steps: %w", err)
	}
	if err := whole(ctx, db, all, counts); err != nil {
		return nil, fmt.Errorf("finding steps: %w", err)
	}
	if err := insideSlices(ctx, db, all); err != nil {
		return nil, fmt.Errorf("finding steps: %w", err)
	}
	if err := profiled(ctx, db, all); err != nil {
		return nil, fmt.Errorf("finding steps: %w", err)
	}
	batches(all, counts)
	if err := settleKinds(ctx, db, all); err != nil {
		return nil, err
	}
	return all, nameUnits(ctx, db, all)
}

// settleKinds brings what was learnt about the steps into timeline_step.
func settleKinds(ctx context.Context, db *dataset.DB, threads []Thread) error {
	for _, kind := range []steps.Kind{steps.Train, steps.Evaluate, steps.Warmup, steps.Other} {
		var ids []string
		for _, t := range threads {
			for _, s := range t.Of(kind) {
				ids = append(ids, strconv.FormatInt(s.ID, 10))
			}
		}
		for chunk := range slices.Chunk(ids, 5000) {
			err := db.Exec(ctx, fmt.Sprintf("UPDATE timeline_step SET kind = '%s' WHERE step_id IN (%s)",
				kind, strings.Join(chunk, ",")))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

type threadAnchors struct {
	tid     int
	anchors []steps.Anchor
	weights []float64     // of the anchors
	slices  []anchorSlice // of the anchors
}

// anchorSlice bounds the slice that an anchor was recorded in; zero where all were.
type anchorSlice struct{ begin, end int64 }

func anchors(ctx context.Context, db *dataset.DB) (byProcess map[int][]threadAnchors, order []int, err error) {
	rows, err := db.Query(ctx, anchorSQL)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	byProcess = map[int][]threadAnchors{}
	for rows.Next() {
		var pid, tid int
		var a steps.Anchor
		var class sql.NullString
		var weight float64
		var slice anchorSlice
		if err := rows.Scan(&pid, &tid, &a.Begin, &a.End, &a.Name, &weight, &slice.begin, &slice.end, &class); err != nil {
			return nil, nil, err
		}
		if !class.Valid {
			continue
		}
		a.Class = steps.Class(class.String[0])
		threads := byProcess[pid]
		if threads == nil {
			order = append(order, pid)
		}
		if len(threads) == 0 || threads[len(threads)-1].tid != tid {
			threads = append(threads, threadAnchors{tid: tid})
		}
		last := &threads[len(threads)-1]
		last.anchors, last.slices, last.weights = append(last.anchors, a), append(last.slices, slice), append(last.weights, weight)
		byProcess[pid] = threads
	}
	return byProcess, order, rows.Err()
}

// best is the training thread of a process: the one with the most backward
// passes or executions, else with the most of what else counts.
func best(threads []threadAnchors) (chosen threadAnchors, found []steps.Step) {
	most := [3]int{}
	for _, t := range threads {
		var n [3]int
		for _, a := range t.anchors {
			switch a.Class {
			case annotated:
				n[0]++
			case steps.Backward, steps.Execute:
				n[1]++
			default:
				n[2]++
			}
		}
		if n[0] > most[0] || n[0] == most[0] && (n[1] > most[1] || n[1] == most[1] && n[2] > most[2]) {
			most, chosen = n, t
		}
	}
	if most[0] > 0 {
		return chosen, marked(chosen.anchors)
	}
	return chosen, steps.Find(chosen.anchors)
}

// marked are the steps that the job itself marked.
func marked(anchors []steps.Anchor) (all []steps.Step) {
	for _, a := range anchors {
		if a.Class == annotated {
			all = append(all, steps.Step{Kind: steps.Train, Number: len(all), Begin: a.Begin, End: a.End,
				Period: -1, Anchors: "P", Method: steps.Annotated})
		}
	}
	for i := range all {
		if i+1 < len(all) {
			all[i].Period = all[i+1].Begin - all[i].Begin
			if all[i].Duration() <= 0 {
				all[i].End = all[i+1].Begin
			}
		} else {
			all[i].Period = all[i].Duration() // the marks touch one another
		}
	}
	all = withEnd(all)
	steps.Settle(all)
	return all
}

// farLonger is how many times as long as all others together a last step cannot be.
const farLonger = 20

// withEnd leaves the last step out if its mark has no end, or one that cannot be: nothing else says when
// it ended.
func withEnd(all []steps.Step) []steps.Step {
	if len(all) < 2 {
		return all
	}
	last := all[len(all)-1]
	if took := last.Duration(); took <= 0 || took/farLonger > last.Begin-all[0].Begin {
		return all[:len(all)-1]
	}
	return all
}

func ranks(ctx context.Context, db *dataset.DB, threads []Thread) error {
	rows, err := db.Query(ctx, "SELECT pid, max(rank) FROM process WHERE rank IS NOT NULL GROUP BY pid")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var pid, rank int
		if err := rows.Scan(&pid, &rank); err != nil {
			return err
		}
		for i := range threads {
			if threads[i].PID == pid {
				threads[i].Rank = &rank
			}
		}
	}
	return rows.Err()
}

// keep makes the table timeline_step.
func keep(ctx context.Context, db *dataset.DB, threads []Thread) error {
	err := db.Exec(ctx, `CREATE OR REPLACE TEMP TABLE timeline_step (step_id BIGINT, pid INTEGER, tid INTEGER,
		kind VARCHAR, anchors VARCHAR, number BIGINT, begin_ns BIGINT, end_ns BIGINT, until_ns BIGINT, whole BOOLEAN, weight DOUBLE)`)
	if err != nil {
		return err
	}
	var values []string
	flush := func() error {
		if len(values) == 0 {
			return nil
		}
		err := db.Exec(ctx, "INSERT INTO timeline_step VALUES "+strings.Join(values, ","))
		values = values[:0]
		return err
	}
	for _, t := range threads {
		for _, s := range t.Steps {
			values = append(values, fmt.Sprintf("(%d,%d,%d,'%s','%s',%d,%d,%d,%d,true,%g)",
				s.ID, t.PID, t.TID, s.Kind, s.Anchors, s.Number, s.Begin, s.End, s.Until(), s.Weight))
			if len(values) == 2000 {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// fewerOperators is of what most steps have: with fewer a step is not whole.
const fewerOperators = 0.95

// whole finds the steps that have fewer operators on their thread than most
// steps of the same kind that have any: they lie between slices, or a slice
// begins or ends in them.
func whole(ctx context.Context, db *dataset.DB, threads []Thread, counts []stepOperators) error {
	kindOf := func(s Step) steps.Kind {
		if s.Kind == steps.Warmup {
			return steps.Train
		}
		return s.Kind
	}
	var parts []string
	for i := range threads {
		found := map[steps.Kind][]int64{}
		for _, s := range threads[i].Steps {
			if n := counts[s.ID].inPeriod; n > 0 {
				found[kindOf(s)] = append(found[kindOf(s)], int64(n))
			}
		}
		usual := map[steps.Kind]float64{}
		for kind, all := range found {
			usual[kind] = steps.Median(all)
		}
		for k := range threads[i].Steps {
			s := &threads[i].Steps[k]
			if s.Whole = float64(counts[s.ID].inPeriod) >= fewerOperators*usual[kindOf(*s)]; !s.Whole {
				parts = append(parts, strconv.FormatInt(s.ID, 10))
			}
		}
	}
	for chunk := range slices.Chunk(parts, 5000) {
		if err := db.Exec(ctx, "UPDATE timeline_step SET whole = false WHERE step_id IN ("+strings.Join(chunk, ",")+")"); err != nil {
			return err
		}
	}
	return nil
}
