package explain

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// Recording is what the kinds of explanations read: the samples of all threads, added up by stack and block of time.
type Recording struct {
	ctx context.Context
	db  *dataset.DB
	in  Inputs

	workerWithoutLoop string // what the pace-setting thread is called if it has no loop; "" is a training thread

	From, Until int64 // while samples were taken, ns
	Pace        Thread
	session     string           // of the pace-setting thread, where there are several; "" is the only one
	Loop        *timeline.Thread // the steps of the pace-setting thread; nil if nothing repeats
	steps       stepKinds
	Rows        []Row // of the pace-setting thread; their NS sum to Until − From with Short
	Others      []Row // of all other threads
	Short       float64
	Processes   map[int32]*Process
	Threads     map[Thread]string // names
	stacks      map[int64]*Stack
	still       []standing
	blocks      int
	few         bool // samples, too few for shares: all that can be seen is that nothing moves
}

// Thread names a thread of the recording.
type Thread struct{ PID, TID int32 }

// Process is one process of the recording.
type Process struct {
	PID, Parent   int32
	Command       string
	Rank          *int32
	Framework     string
	Python        string
	Cgroup        string
	StartedNS     int64
	WorldSize     int32
	recordedChild bool // its parent is recorded, too
}

// Row adds up samples of one thread that are alike.
type Row struct {
	Thread
	OnCPU          bool
	Cause, Syscall string
	Waker          int32
	Stack          *Stack
	GIL, GC        bool
	Block          int
	Heavy          bool // in a heavy step
	NS             float64
	ReadyNS        float64
	Samples        int64
}

// standing is a thread that did not run when the recorder polled it.
type standing struct {
	Thread
	Syscall string
	State   string
	SinceNS int64
	SeenNS  int64
	Stack   *Stack
}

// causePreempted is the cause of a wait in which the thread could run and had no CPU.
const causePreempted = "preempted"

// fewestSamples is how many samples a verdict takes: with fewer, shares are computed from spans.
const fewestSamples = 100

func load(ctx context.Context, db *dataset.DB, in Inputs) (*Recording, error) {
	r := &Recording{ctx: ctx, db: db, in: in, Processes: map[int32]*Process{}, Threads: map[Thread]string{}, stacks: map[int64]*Stack{}}
	var from, until, onCPU sql.NullInt64
	var samples, imported int64
	err := db.Row(ctx, `SELECT greatest((SELECT min(started_ns) FROM session), min(ts_ns)),
			least(coalesce((SELECT max(ended_ns) FROM session), 9223372036854775807), max(ts_ns + weight_ns)),
			count(*), min(ts_ns) FILTER (state = 'on_cpu'), (SELECT count(*) FROM session WHERE coalesce(source, 'recorded') <> 'recorded')
			FROM sample`,
		nil, &from, &until, &samples, &onCPU, &imported)
	if err != nil || imported > 0 {
		return nil, err
	}
	for _, read := range []func() error{r.readProcesses, r.readStill} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	if samples == 0 && len(r.still) == 0 {
		return nil, nil
	}
	r.few = samples < fewestSamples
	r.From, r.Until = from.Int64, until.Int64
	if !from.Valid {
		if err := db.Row(ctx, "SELECT min(started_ns), max(coalesce(ended_ns, started_ns)) FROM session", nil, &r.From, &r.Until); err != nil {
			return nil, err
		}
	}
	if !r.choosePace() {
		return nil, nil
	}
	if err := r.chooseHost(); err != nil {
		return nil, err
	}
	trains, err := timeline.Trains(ctx, db)
	if err != nil {
		return nil, err
	}
	if !trains[int(r.Pace.PID)] {
		r.workerWithoutLoop = "main thread"
		if r.Pace.TID != r.Pace.PID {
			r.workerWithoutLoop = "busiest thread"
		}
	}
	if err := r.heavySteps(); err != nil {
		return nil, err
	}
	if err := r.readSamples(); err != nil {
		return nil, err
	}
	if err := r.readFrames(); err != nil {
		return nil, err
	}
	return r, r.calibrate()
}

// Wall is the time that shares are of.
func (r *Recording) Wall() float64 { return float64(max(r.Until-r.From, 1)) }

func (r *Recording) readProcesses() error {
	err := r.db.Each(r.ctx, `SELECT pid, coalesce(parent_pid, 0), coalesce(command, exe, ''), coalesce(rank, -1), coalesce(framework, ''),
		coalesce(python_version, ''), coalesce(cgroup, ''), coalesce(started_ns, 0), coalesce(world_size, 0)
		FROM process`, func(row []driver.Value) error {
		p := &Process{PID: int32(integer(row[0])), Parent: int32(integer(row[1])), Command: text(row[2]), Framework: text(row[4]),
			Python: text(row[5]), Cgroup: text(row[6]), StartedNS: integer(row[7]), WorldSize: int32(integer(row[8]))}
		if rank := int32(integer(row[3])); rank >= 0 {
			p.Rank = &rank
		}
		r.Processes[p.PID] = p
		return nil
	})
	for _, p := range r.Processes {
		p.recordedChild = r.Processes[p.Parent] != nil
	}
	if err != nil {
		return err
	}
	return r.db.Each(r.ctx, `SELECT pid, tid, any_value(name) FROM thread WHERE name IS NOT NULL
		GROUP BY ALL`, func(row []driver.Value) error {
		r.Threads[Thread{int32(integer(row[0])), int32(integer(row[1]))}] = text(row[2])
		return nil
	})
}

func (r *Recording) readStill() error {
	return r.db.Each(r.ctx, `SELECT pid, tid, coalesce(syscall, ''), coalesce(state, ''), coalesce(since_ns, seen_ns), seen_ns,
		coalesce(stack_id, 0)
		FROM still_thread ORDER BY pid, tid`, func(row []driver.Value) error {
		r.still = append(r.still, standing{Thread{int32(integer(row[0])), int32(integer(row[1]))}, text(row[2]), text(row[3]),
			integer(row[4]), integer(row[5]), r.stack(integer(row[6]))})
		return nil
	})
}

// stack is the stack with an id; its frames are read later. 0 is no stack.
func (r *Recording) stack(id int64) *Stack {
	if id == 0 {
		return noStack
	}
	s := r.stacks[id]
	if s == nil {
		s = &Stack{}
		r.stacks[id] = s
	}
	return s
}

// fewestBlocks is into how many blocks of time a recording is cut for intervals.
const fewestBlocks = 10

// readSamples adds up the samples by what they show. A wait is cut at the edges of the recording.
func (r *Recording) readSamples() error {
	r.blocks = fewestBlocks
	if n := int((r.Until - r.From) / max(1e9, int64(2*r.steps.medianNS))); n > fewestBlocks {
		r.blocks = min(n, 60)
	}
	of := func(pid, tid, waker string) string {
		return fmt.Sprintf(`%s AS pid, %s AS tid, %s AS waker`, pid, tid, waker)
	}
	query := fmt.Sprintf(`
		WITH cut AS (SELECT pid, tid, state, coalesce(cause, '') AS cause, coalesce(syscall, '') AS syscall, coalesce(waker_tid, 0) AS waker,
		coalesce(stack_id, 0) AS stack_id,
			coalesce(holds_gil, false) AS gil, coalesce(in_gc, false) AS gc, greatest(ts_ns, %[1]d) AS since,
			CASE WHEN state = 'on_cpu' THEN weight_ns ELSE least(ts_ns + weight_ns, %[2]d) - greatest(ts_ns, %[1]d) END AS ns,
			coalesce(ready_ns, 0) AS ready
			FROM sample WHERE ts_ns < %[2]d AND ts_ns + weight_ns > %[1]d),
		blocked AS (SELECT *, least(%[3]d - 1, ((since - %[1]d) * %[3]d) // greatest(%[2]d - %[1]d, 1))::INT AS block, pid = %[4]d
		AND tid = %[5]d AS pace FROM cut WHERE ns > 0)
		SELECT %[6]s, state, cause, syscall, stack_id, gil, gc, block, coalesce(b.since < h.until_ns, false) AS heavy, sum(ns)::BIGINT,
		sum(least(ready, ns))::BIGINT, count(*)
		FROM blocked b ASOF LEFT JOIN explain_heavy h ON b.since >= h.begin_ns WHERE pace GROUP BY ALL
		UNION ALL SELECT %[7]s, state, cause, syscall, stack_id, gil, gc, 0, false, sum(ns)::BIGINT, sum(least(ready, ns))::BIGINT, count(*)
		FROM blocked WHERE NOT pace GROUP BY ALL ORDER BY ALL`, // sums of floats depend on their order
		r.From, r.Until, r.blocks, r.Pace.PID, r.Pace.TID, of("pid", "tid", "waker"), of("pid", "tid", "0"))
	return r.db.Each(r.ctx, query, func(v []driver.Value) error {
		row := Row{Thread: Thread{int32(integer(v[0])), int32(integer(v[1]))}, Waker: int32(integer(v[2])), OnCPU: text(v[3]) == "on_cpu",
			Cause:   text(v[4]),
			Syscall: text(v[5]), Stack: r.stack(integer(v[6])), GIL: truth(v[7]), GC: truth(v[8]), Block: int(integer(v[9])), Heavy: truth(v[10]),
			NS: float64(integer(v[11])), ReadyNS: float64(integer(v[12])), Samples: integer(v[13])}
		if row.Thread == r.Pace {
			r.Rows = append(r.Rows, row)
		} else {
			r.Others = append(r.Others, row)
		}
		return nil
	})
}

// calibrate makes the times of the pace-setting thread sum to the wall time: samples on the CPU divide the thread's CPU
// time in proportion, each wait has its own time, and what is left are waits too short to be recorded.
func (r *Recording) calibrate() error {
	var cpu, delay sql.NullInt64
	err := r.db.Row(r.ctx, `SELECT max(cpu_ns), max(run_delay_ns) FROM thread
		WHERE pid = ? AND tid = ?`, []any{r.Pace.PID, r.Pace.TID}, &cpu, &delay)
	if err != nil {
		return err
	}
	var on, off float64
	last := make([]float64, r.blocks)
	for i := range r.Rows {
		if r.Rows[i].OnCPU {
			on += r.Rows[i].NS
		} else {
			off += r.Rows[i].NS
		}
		last[r.Rows[i].Block] += r.Rows[i].NS
	}
	r.openWait(&off)
	wall := r.Wall()
	if off > wall { // waits overlap nothing on one thread: clocks of the edges
		r.scale(false, wall/off)
		off = wall
	}
	c := on
	if cpu.Valid && cpu.Int64 > 0 {
		c = float64(cpu.Int64)
	}
	c = min(c, wall-off)
	if on > 0 {
		r.scale(true, c/on)
	} else {
		c = 0
	}
	r.Short = max(wall-c-off, 0)
	r.addRunDelay(float64(delay.Int64))
	return nil
}

// addRunDelay makes rows, without a line, of the time in which the thread was ready and had no CPU and that no sample
// shows: preemptions shorter than the threshold, and all of them once waits are sampled. delay is the scheduler's own
// sum (/proc/PID/task/TID/schedstat) of the whole recording.
func (r *Recording) addRunDelay(delay float64) {
	for i := range r.Rows {
		delay -= r.Rows[i].ReadyNS
	}
	delay = min(delay, r.Short)
	if delay <= 0 {
		return
	}
	r.Short -= delay
	for block := range r.blocks {
		ns := delay / float64(r.blocks)
		r.Rows = append(r.Rows, Row{Thread: r.Pace, Cause: causePreempted, Stack: noStack, Block: block, NS: ns, ReadyNS: ns})
	}
}

// openWait adds the wait that had not ended when the recording did: of a thread that stands since then it is known where.
func (r *Recording) openWait(off *float64) {
	for _, s := range r.still {
		if s.Thread != r.Pace {
			continue
		}
		since := max(s.SinceNS, r.From)
		if s.SinceNS == s.SeenNS || since >= r.Until {
			continue
		}
		block := min(r.blocks-1, int((since-r.From)*int64(r.blocks)/max(r.Until-r.From, 1)))
		ns := float64(r.Until - since)
		r.Rows = append(r.Rows, Row{Thread: s.Thread, Cause: "syscall", Syscall: s.Syscall, Stack: s.Stack, Block: block, NS: ns, Samples: 1})
		*off += ns
	}
}

func (r *Recording) scale(onCPU bool, by float64) {
	for i := range r.Rows {
		if r.Rows[i].OnCPU == onCPU {
			r.Rows[i].NS *= by
			r.Rows[i].ReadyNS *= by
		}
	}
}

func text(v driver.Value) string {
	switch s := v.(type) {
	case string:
		return s
	case []byte:
		return string(s)
	}
	return ""
}

func truth(v driver.Value) bool { b, _ := v.(bool); return b }

func integer(v driver.Value) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	case int16:
		return int64(n)
	case int8:
		return int64(n)
	case float64:
		return int64(n)
	}
	return 0
}

// base is the last element of a path.
func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
