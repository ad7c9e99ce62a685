package findings

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/steps"
	"github.com/ebpfprof/ebpfprof/internal/timeline"
)

// fewOthers is how many steps outside of slices say how long a step is without
// the probes of operators.
const fewOthers = 5

// unslowed is how many times shorter steps between slices are than the replayed
// ones: probes of every operator make a step longer. 1 where nothing says so.
func unslowed(t timeline.Thread, replayed []float64) float64 {
	var whole, other []int64
	for _, s := range loop(t) {
		if !s.Whole {
			other = append(other, s.Period)
		}
	}
	for _, p := range replayed {
		whole = append(whole, int64(p))
	}
	if len(other) < fewOthers || len(whole) == 0 {
		return 1
	}
	return min(1, steps.Median(other)/steps.Median(whole))
}

// mostSteps bounds the memory of an analysis: so many steps are replayed.
const mostSteps = 200

// recording is what rules look at: the steps of one training thread as graphs,
// and the samples of its process while these ran.
type recording struct {
	ctx        context.Context
	db         *dataset.DB
	thresholds Thresholds
	thread     timeline.Thread
	threads    []timeline.Thread // of all ranks
	graphs     []*timeline.StepGraph
	periods    []float64 // ns, one each graph
	scale      float64   // what the probes made of a step's time, undone
	samples    []sample  // of the process, in order of time
	stacks     map[int64]*stack
	library    *regexp.Regexp
	contended  *timeline.Contention // beyond the threshold
	failed     error                // of a query that a rule made
}

// sample is a row of table sample. Off the CPU it is the wait from From to To;
// on the CPU it stands for as much time around From.
type sample struct {
	From, To int64
	TID      int
	OnCPU    bool
	Cause    string
	Syscall  string
	GIL      bool // the thread held the interpreter's lock
	Stack    *stack
}

func (s sample) weight() int64 { return s.To - s.From }

// stack is what rules ask about a call stack.
type stack struct {
	place     place
	function  string // innermost Python function
	waitsGIL  bool   // in CPython's take_gil
	compiling bool   // a compiler of the framework's is at work
}

// place is a line of the user's code.
type place struct {
	file     string
	line     int
	function string
}

// load reads the thread's steps: whole ones of one kind, settled, in a row as far
// as there are.
func load(ctx context.Context, db *dataset.DB, t timeline.Thread, thresholds Thresholds) (*recording, error) {
	r := &recording{ctx: ctx, db: db, thresholds: thresholds, thread: t, stacks: map[int64]*stack{}}
	var err error
	if r.library, err = regexp.Compile(strings.Join(thresholds.LibraryPaths, "|")); err != nil {
		return nil, fmt.Errorf("%w: library_paths: %w", ErrThresholds, err)
	}
	looked := chosen(t)
	spans, err := timeline.SpansOf(ctx, db, t, looked)
	if err != nil {
		return nil, err
	}
	for i, s := range looked {
		g, err := timeline.NewStepGraph(t, s, spans[i])
		if err != nil {
			return nil, err
		}
		r.graphs = append(r.graphs, g)
		r.periods = append(r.periods, g.Graph.Replay(g.Times).Last())
	}
	r.scale = unslowed(t, r.periods)
	if len(r.graphs) == 0 {
		return r, nil
	}
	if err := r.readStacks(); err != nil {
		return nil, err
	}
	return r, r.readSamples()
}

// loop are the settled steps of the kind that the answers are about.
func loop(t timeline.Thread) []timeline.Step {
	kind := steps.Train
	if len(t.Of(steps.Train)) == 0 {
		kind = steps.Evaluate
	}
	return slices.DeleteFunc(t.Of(kind), func(s timeline.Step) bool { return s.Period <= 0 })
}

// settled are the periods in ns that the noise is measured by. In a recording by
// slices the steps in them are slower, by more or less, which is no noise of the
// job's: it is measured on the steps between slices where those are enough.
func settled(t timeline.Thread) []float64 {
	var whole, other []float64
	for _, s := range loop(t) {
		if s.Whole {
			whole = append(whole, float64(s.Period))
		} else {
			other = append(other, float64(s.Period))
		}
	}
	if len(other) >= steps.EnoughForNoise {
		return other
	}
	return whole
}

// likeNoOther is from how many times the usual step on a step of the warm-up is no example
// of a step: in it something was done that is done once.
const likeNoOther = 5

// chosen are those that are replayed: a row of whole ones as far as there are.
func chosen(t timeline.Thread) []timeline.Step {
	partial := func(s timeline.Step) bool {
		return !s.Whole || s.Period <= 0 || s.Kind == steps.Warmup && s.Number == 0
	}
	all := slices.DeleteFunc(loop(t), partial)
	if len(all) < fewSteps {
		// The steps of the first slice look like warm-up: the probes slow them down, but
		// not as a compiler does.
		var periods []int64
		for _, s := range loop(t) {
			periods = append(periods, s.Period)
		}
		usual := steps.Median(periods)
		first := func(s timeline.Step) bool { return partial(s) || usual > 0 && float64(s.Period) > likeNoOther*usual }
		if early := slices.DeleteFunc(t.Of(steps.Train, steps.Warmup), first); len(early) > len(all) {
			all = early
		}
	}
	if len(all) > mostSteps {
		from := (len(all) - mostSteps) / 2
		all = all[from : from+mostSteps]
	}
	return all
}

func (r *recording) readStacks() error {
	rows, err := r.db.Query(r.ctx, `SELECT stack_id, f.kind, coalesce(f."function", ''), coalesce(f.file, ''),
		coalesce(f.line, 0)
		FROM (SELECT stack_id, unnest(frames) AS f, generate_subscripts(frames, 1) AS i FROM stack
			WHERE stack_id IN (SELECT stack_id FROM sample WHERE pid = ?)
				OR stack_id IN (SELECT coalesce(python_stack_id, stack_id) FROM span WHERE pid = ?))
		ORDER BY stack_id, i`, r.thread.PID, r.thread.PID)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var kind, function, file string
		var line int
		if err := rows.Scan(&id, &kind, &function, &file, &line); err != nil {
			return err
		}
		s := r.stacks[id]
		if s == nil {
			s = new(stack)
			r.stacks[id] = s
		}
		r.addFrame(s, kind, function, file, line)
	}
	return rows.Err()
}

func (r *recording) addFrame(s *stack, kind, function, file string, line int) {
	switch {
	case kind != "python":
		s.waitsGIL = s.waitsGIL || function == "take_gil"
		return
	case s.function == "":
		s.function = function
	}
	s.compiling = s.compiling || compiles(function, file)
	if s.place.file == "" && line > 0 && !r.library.MatchString(file) {
		s.place = place{file, line, function}
	}
}

func (r *recording) readSamples() error {
	first, last := r.graphs[0].Step.Begin, r.graphs[len(r.graphs)-1].Step.Until()
	rows, err := r.db.Query(r.ctx, `SELECT ts_ns, weight_ns, tid, state, coalesce(cause, ''), coalesce(syscall, ''),
		coalesce(holds_gil, false), stack_id FROM sample
		WHERE pid = ? AND ts_ns < ? AND ts_ns + weight_ns >= ? ORDER BY ts_ns`, r.thread.PID, last, first)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var s sample
		var weight int64
		var state string
		var id sql.NullInt64
		if err := rows.Scan(&s.From, &weight, &s.TID, &state, &s.Cause, &s.Syscall, &s.GIL, &id); err != nil {
			return err
		}
		s.To, s.OnCPU = s.From+weight, state == "on_cpu"
		if s.Stack = r.stacks[id.Int64]; s.Stack == nil || !id.Valid {
			s.Stack = &stack{}
		}
		r.samples = append(r.samples, s)
	}
	return rows.Err()
}

// meanNS is the mean period of the steps.
func (r *recording) meanNS() float64 {
	sum := 0.0
	for _, p := range r.periods {
		sum += p
	}
	return sum / float64(max(len(r.periods), 1))
}

// at is the graph of the step that a time lies in, nil outside.
func (r *recording) at(ns int64) *timeline.StepGraph {
	i := sort.Search(len(r.graphs), func(i int) bool { return r.graphs[i].Step.Until() > ns })
	if i < len(r.graphs) && r.graphs[i].Step.Begin <= ns {
		return r.graphs[i]
	}
	return nil
}

// accused are spans of the steps, by their place in the graph's Spans.
type accused map[*timeline.StepGraph][]int

// placeOf is the line that the most time of the spans was called from: by the
// spans' own stacks, else by samples of the thread while they ran.
func (r *recording) placeOf(spans accused) place {
	if p := heaviest(r.called(spans)); p.file != "" {
		return p
	}
	return heaviest(r.seen(spans))
}

// inside is the line that the most samples show while the spans ran: below the
// call where the user's code goes on there, as a data set's does in a load.
func (r *recording) inside(spans accused) place {
	if p := heaviest(r.seen(spans)); p.file != "" {
		return p
	}
	return heaviest(r.called(spans))
}

func (r *recording) called(spans accused) map[place]int64 {
	weights := map[place]int64{}
	for g, all := range spans {
		for _, i := range all {
			s := g.Spans[i]
			if known := r.stacks[s.Stack]; known != nil && known.place.file != "" {
				weights[known.place] += max(s.End-s.Begin, 1)
			}
		}
	}
	return weights
}

func (r *recording) seen(spans accused) map[place]int64 {
	weights := map[place]int64{}
	for g, all := range spans {
		for _, i := range all {
			r.sampled(g.Spans[i].TID, g.Spans[i].Begin, g.Spans[i].End, weights)
		}
	}
	return weights
}

// sampled adds up what the thread's samples between two times show.
func (r *recording) sampled(tid int, from, to int64, weights map[place]int64) {
	// Waits may have begun before; those are few, and long ones are in steps of their own.
	i := sort.Search(len(r.samples), func(i int) bool { return r.samples[i].From >= from })
	for ; i < len(r.samples) && r.samples[i].From < to; i++ {
		if s := r.samples[i]; s.TID == tid && s.Stack.place.file != "" {
			weights[s.Stack.place] += min(s.weight(), to-from)
		}
	}
}

func heaviest(weights map[place]int64) (best place) {
	var most int64
	for p, w := range weights {
		if w > most || w == most && (p.file < best.file || p.file == best.file && p.line < best.line) {
			best, most = p, w
		}
	}
	return best
}
