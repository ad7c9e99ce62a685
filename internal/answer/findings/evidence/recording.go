// Package evidence is what the rules of findings look at and accuse by: the steps of a
// training thread as graphs, its process's samples, the lines of code behind both, what the
// tracer's own probes made of them, and what a step is shorter by where something is replaced.
package evidence

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/graph"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
	"github.com/ebpfprof/ebpfprof/internal/model/usercode"
)

// mostSteps bounds the memory of an analysis: so many steps are replayed.
const mostSteps = 200

// Recording is what rules look at: the steps of one training thread as graphs,
// and the samples of its process while these ran. Rules do not change it.
type Recording struct {
	Ctx        context.Context
	DB         *dataset.DB
	Thresholds thresholds.Set
	Thread     timeline.Thread
	Threads    []timeline.Thread // of all ranks
	joined     func() ([]*timeline.RanksGraph, error)
	Graphs     []*timeline.StepGraph
	Periods    []float64 // ns, one each graph
	Probes     Probes
	bases      []graph.Times // without what the probes cost, one each graph
	Undone     []float64     // ns, how long the steps are with these
	Samples    []Sample      // of the process, in order of time
	stacks     map[int64]*Stack
	libraries  []*regexp.Regexp // that the thresholds add
	Contention timeline.Contention
	// most is the same where only bounds of device times are known, with the most time that
	// the work there can have taken; here it is the least. Nil where there are points in time.
	Most *Recording
}

// Sample is a row of table sample. Off the CPU it is the wait from From to To;
// on the CPU it stands for as much time around From.
type Sample struct {
	From, To int64
	TID      int
	OnCPU    bool
	Cause    string
	Syscall  string
	GIL      bool // the thread held the interpreter's lock
	Stack    *Stack
}

// Weight is how much time the sample stands for, in ns.
func (s Sample) Weight() int64 { return s.To - s.From }

// Stack is what rules ask about a call stack.
type Stack struct {
	Place     Place
	Function  string // innermost Python function
	WaitsGIL  bool   // in CPython's take_gil
	timed     bool   // the frame last seen is the C library's timed wait for a condition
	Native    bool   // there are native frames
	Compiling bool   // a compiler of the framework's is at work
	optimizer bool   // it leads through PyTorch's optimizers
	loader    bool   // or through its data loader
}

// Place is a line of the user's code.
type Place struct {
	File     string
	Line     int
	Function string
}

// Load reads the thread's steps: whole ones of one kind, settled, in a row as far
// as there are. threads are those of all ranks.
func Load(ctx context.Context, db *dataset.DB, t timeline.Thread, threads []timeline.Thread, limits thresholds.Set) (*Recording, error) {
	r := &Recording{Ctx: ctx, DB: db, Thresholds: limits, Thread: t, Threads: threads, stacks: map[int64]*Stack{}}
	r.joined = sync.OnceValues(r.joinRanks)
	var err error
	for _, path := range limits.LibraryPaths {
		library, err := regexp.Compile(path)
		if err != nil {
			return nil, fmt.Errorf("%w: library_paths: %w", thresholds.ErrBad, err)
		}
		r.libraries = append(r.libraries, library)
	}
	looked := chosen(t)
	spans, err := timeline.SpansOf(ctx, db, t, looked)
	if err != nil {
		return nil, err
	}
	allocations, err := timeline.AllocationsOf(ctx, db, t, looked)
	if err != nil {
		return nil, err
	}
	if err := r.replayed(looked, spans, allocations, timeline.Least); err != nil || len(r.Graphs) == 0 {
		return r, err
	}
	if err := r.readStacks(); err != nil {
		return nil, err
	}
	if err := r.readSamples(); err != nil {
		return nil, err
	}
	all := Loop(t)
	r.Contention, err = timeline.ContentionOf(ctx, db, t.PID, t.TID, all[0].Begin, all[len(all)-1].Until())
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(r.Graphs, (*timeline.StepGraph).Bounded) {
		other := *r
		other.joined = sync.OnceValues(other.joinRanks)
		other.Graphs, other.Periods = nil, nil
		r.Most = &other
		return r, other.replayed(looked, spans, allocations, timeline.Most)
	}
	return r, nil
}

// replayed makes the graphs of the steps at one end of the bounds of device times.
func (r *Recording) replayed(looked []timeline.Step, spans [][]timeline.Span, allocations [][]timeline.Allocation, end timeline.End) error {
	for i, s := range looked {
		g, err := timeline.NewStepGraphAt(r.Thread, s, spans[i], end)
		if err != nil {
			return err
		}
		g.Allocated(allocations[i])
		r.Graphs = append(r.Graphs, g)
		r.Periods = append(r.Periods, g.Graph.Replay(g.Times).Last())
	}
	return r.undisturbed()
}

// Loop are the settled steps of the kind that the answers are about.
func Loop(t timeline.Thread) []timeline.Step {
	kind := steps.Train
	if len(t.Of(steps.Train)) == 0 {
		kind = steps.Evaluate
	}
	return slices.DeleteFunc(t.Of(kind), func(s timeline.Step) bool { return s.Period <= 0 })
}

// Settled are the periods in ns that the noise is measured by. In a recording by
// slices the steps in them are slower, by more or less, which is no noise of the
// job's: it is measured on the steps between slices where those are enough.
func Settled(t timeline.Thread) []float64 {
	var whole, other []float64
	for _, s := range timeline.Undisturbed(Loop(t)) {
		switch {
		case s.Whole:
			whole = append(whole, float64(s.Period))
		case !s.Sliced:
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
	all := slices.DeleteFunc(Loop(t), partial)
	// Steps of a merged trace have exact times of devices; the others are without that profiler's price.
	if exact := slices.DeleteFunc(slices.Clone(all), func(s timeline.Step) bool { return !s.Exact }); len(exact) >= fewSteps {
		all = exact
	} else {
		all = timeline.Undisturbed(all)
	}
	if len(all) < fewSteps {
		// The steps of the first slice look like warm-up: the probes slow them down, but
		// not as a compiler does.
		var periods []int64
		for _, s := range Loop(t) {
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

func (r *Recording) readStacks() error {
	rows, err := r.DB.Query(r.Ctx, `SELECT stack_id, f.kind, coalesce(f."function", ''), coalesce(f.file, ''),
		coalesce(f.line, 0), coalesce(f.module, '')
		FROM (SELECT stack_id, unnest(frames) AS f, generate_subscripts(frames, 1) AS i FROM stack
			WHERE stack_id IN (SELECT stack_id FROM sample WHERE pid = ?)
				OR stack_id IN (SELECT coalesce(python_stack_id, stack_id) FROM span WHERE pid = ?))
		ORDER BY stack_id, i`, r.Thread.PID, r.Thread.PID)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var f frame
		if err := rows.Scan(&id, &f.kind, &f.function, &f.file, &f.line, &f.module); err != nil {
			return err
		}
		s := r.stacks[id]
		if s == nil {
			s = new(Stack)
			r.stacks[id] = s
		}
		r.addFrame(s, f)
	}
	return rows.Err()
}

// frame is one of a stack's, which come leaf first.
type frame struct {
	kind, function, file string
	line                 int
	module               string
}

func (r *Recording) addFrame(s *Stack, f frame) {
	if f.kind != "python" {
		s.WaitsGIL = s.WaitsGIL || f.function == "take_gil" || s.timed && waitsForTheLock(f)
		s.timed = strings.Contains(f.function, "pthread_cond_timedwait")
		s.Native = s.Native || f.kind == "native"
		return
	}
	if s.timed = false; s.Function == "" {
		s.Function = f.function
	}
	s.Compiling = s.Compiling || Compiles(f.function, f.file)
	s.optimizer, s.loader = s.optimizer || usercode.IsOptimizer(f.file), s.loader || usercode.IsLoader(f.file)
	if s.Place.File == "" && f.line > 0 && r.IsUsers(f.file) {
		s.Place = Place{f.file, f.line, f.function}
	}
}

// interpreter are the files that CPython itself is in: a program, or a library.
var interpreter = regexp.MustCompile(`^(lib)?python[0-9.]*[a-z]*(\.so[0-9.]*)?$`)

// waitsForTheLock says whether a frame that called the C library's timed wait for a
// condition is CPython's take_gil, or what it was inlined into. take_gil is a local
// function, of which a stripped interpreter keeps no name; but nothing else in CPython
// waits so, where semaphores are there: a lock takes sem_clockwait or sem_timedwait
// (Python/thread_pthread.h, Python/parking_lot.c), and what hands the GIL over waits
// without a time (drop_gil in Python/ceval_gil.h, ceval_gil.c since 3.12).
func waitsForTheLock(f frame) bool {
	return interpreter.MatchString(f.module) && !strings.HasPrefix(f.function, "PyThread_")
}

// IsUsers says whether a file is the user's own.
func (r *Recording) IsUsers(file string) bool {
	return usercode.Is(file) && !slices.ContainsFunc(r.libraries, func(l *regexp.Regexp) bool { return l.MatchString(file) })
}

func (r *Recording) readSamples() error {
	first, last := r.Graphs[0].Step.Begin, r.Graphs[len(r.Graphs)-1].Step.Until()
	rows, err := r.DB.Query(r.Ctx, `SELECT ts_ns, weight_ns, tid, state, coalesce(cause, ''), coalesce(syscall, ''),
		coalesce(holds_gil, false), stack_id FROM sample
		WHERE pid = ? AND ts_ns < ? AND ts_ns + weight_ns >= ? ORDER BY ts_ns`, r.Thread.PID, last, first)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var s Sample
		var weight int64
		var state string
		var id sql.NullInt64
		if err := rows.Scan(&s.From, &weight, &s.TID, &state, &s.Cause, &s.Syscall, &s.GIL, &id); err != nil {
			return err
		}
		s.To, s.OnCPU = s.From+weight, state == "on_cpu"
		if s.Stack = r.stacks[id.Int64]; s.Stack == nil || !id.Valid {
			s.Stack = &Stack{}
		}
		r.Samples = append(r.Samples, s)
	}
	return rows.Err()
}

// MeanNS is the mean period of the steps.
func (r *Recording) MeanNS() float64 {
	sum := 0.0
	for _, p := range r.Periods {
		sum += p
	}
	return sum / float64(max(len(r.Periods), 1))
}

// At is the graph of the step that a time lies in, nil outside.
func (r *Recording) At(ns int64) *timeline.StepGraph {
	i := sort.Search(len(r.Graphs), func(i int) bool { return r.Graphs[i].Step.Until() > ns })
	if i < len(r.Graphs) && r.Graphs[i].Step.Begin <= ns {
		return r.Graphs[i]
	}
	return nil
}

// Accused are spans of the steps, by their place in the graph's Spans.
type Accused map[*timeline.StepGraph][]int

// PlaceOf is the line that the most time of the spans was called from: by the
// spans' own stacks, else by samples of the thread while they ran.
func (r *Recording) PlaceOf(spans Accused) Place {
	if p := Heaviest(r.called(spans)); p.File != "" {
		return p
	}
	return Heaviest(r.seen(spans))
}

// Inside is the line that the most samples show while the spans ran: below the
// call where the user's code goes on there, as a data set's does in a load.
func (r *Recording) Inside(spans Accused) Place {
	if p := Heaviest(r.seen(spans)); p.File != "" {
		return p
	}
	return Heaviest(r.called(spans))
}

func (r *Recording) called(spans Accused) map[Place]int64 {
	weights := map[Place]int64{}
	for g, all := range spans {
		for _, i := range all {
			s := g.Spans[i]
			if known := r.stacks[s.Stack]; known != nil && known.Place.File != "" {
				weights[known.Place] += max(s.End-s.Begin, 1)
			}
		}
	}
	return weights
}

func (r *Recording) seen(spans Accused) map[Place]int64 {
	weights := map[Place]int64{}
	for g, all := range spans {
		for _, i := range all {
			r.sampled(g.Spans[i].TID, g.Spans[i].Begin, g.Spans[i].End, weights)
		}
	}
	return weights
}

// sampled adds up what the thread's samples between two times show.
func (r *Recording) sampled(tid int, from, to int64, weights map[Place]int64) {
	// Waits may have begun before; those are few, and long ones are in steps of their own.
	i := sort.Search(len(r.Samples), func(i int) bool { return r.Samples[i].From >= from })
	for ; i < len(r.Samples) && r.Samples[i].From < to; i++ {
		if s := r.Samples[i]; s.TID == tid && s.Stack.Place.File != "" {
			weights[s.Stack.Place] += min(s.Weight(), to-from)
		}
	}
}

// Heaviest is the line with the most weight, of equals the first by name.
func Heaviest(weights map[Place]int64) (best Place) {
	var most int64
	for p, w := range weights {
		if w > most || w == most && (p.File < best.File || p.File == best.File && p.Line < best.Line) {
			best, most = p, w
		}
	}
	return best
}
