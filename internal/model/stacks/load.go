package stacks

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/profile"
	"github.com/ebpfprof/ebpfprof/symbolize"
)

// ErrNoSamples is returned by Load when no sample of the dataset matches the filter.
var ErrNoSamples = errors.New("no samples")

// Filter chooses samples. The zero value is all threads, on the CPU.
type Filter struct {
	PIDs, TIDs []int
	OffCPU     bool
	GIL        bool // only while the thread held its interpreter's lock
	Threads    bool // each thread by itself, below its process
}

// Load adds up the samples of a dataset by stack. If samples of several processes
// match, or Filter.Threads is set, the stacks are grouped.
func Load(ctx context.Context, db *dataset.DB, f Filter) (profile.Profile, error) {
	var rows []sampleRow
	err := db.Each(ctx, f.samplesSQL(), func(row []driver.Value) error {
		rows = append(rows, sampleRow{
			session: text(row[0]), pid: integer(row[1]), tid: integer(row[2]), cause: text(row[3]), syscall: text(row[4]),
			stacked: row[5] != nil, stackID: integer(row[5]), weight: integer(row[6]), samples: integer(row[7]),
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading samples: %w", err)
	}
	if len(rows) == 0 {
		return nil, f.explain(ctx, db)
	}
	known, err := Read(ctx, db, "SELECT stack_id FROM sample WHERE "+f.where())
	if err != nil {
		return nil, err
	}
	groups, err := f.groups(ctx, db, rows)
	if err != nil {
		return nil, err
	}
	all := make(profile.Profile, len(rows))
	for i := range rows {
		all[i] = rows[i].stack(known)
		all[i].Group = groups[rows[i].thread()]
	}
	return all, nil
}

const (
	frameSeparator = "\x1e"
	fieldSeparator = "\x1f"
)

// samplesSQL adds up by stack.
func (f Filter) samplesSQL() string {
	tid := "0"
	if f.Threads {
		tid = "tid"
	}
	return fmt.Sprintf(`SELECT session_id, pid, %s AS tid, coalesce(cause, '') AS cause, coalesce(syscall, '') AS syscall, stack_id,
	sum(weight_ns)::BIGINT AS weight_ns, count(*) AS samples FROM sample WHERE %s GROUP BY ALL ORDER BY ALL`, tid, f.where())
}

// frameText is the expression that writes a frame as text, which parseFrame
// reads: the driver would make a map of it.
func frameText(f string) string {
	return strings.ReplaceAll(`concat_ws(chr(31), F.kind, coalesce(F.function, ''), coalesce(F.file, ''),
		coalesce(F.line, 0), coalesce(F.module, ''), coalesce(F.build_id, ''), coalesce(F."offset", -1))`, "F.", f+".")
}

// framesText is the expression that writes a column of frames as text, which
// parseFrames reads.
func framesText(column string) string {
	return `coalesce(array_to_string(list_transform(` + column + `, lambda f: ` + frameText("f") + `), chr(30)), '')`
}

func (f Filter) where() string {
	state := "on_cpu"
	if f.OffCPU {
		state = "off_cpu"
	}
	conditions := []string{"state = '" + state + "'"}
	for column, ids := range map[string][]int{"pid": f.PIDs, "tid": f.TIDs} {
		if len(ids) > 0 {
			conditions = append(conditions, column+" IN ("+joined(ids)+")")
		}
	}
	if f.GIL {
		conditions = append(conditions, "holds_gil")
	}
	slices.Sort(conditions)
	return strings.Join(conditions, " AND ")
}

func joined(ids []int) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.Itoa(id)
	}
	return strings.Join(texts, ", ")
}

// explain is the error for a filter that no sample matches.
func (f Filter) explain(ctx context.Context, db *dataset.DB) error {
	var on, off int64
	var pids string
	err := db.Row(ctx, `SELECT count(*) FILTER (state = 'on_cpu'), count(*) FILTER (state = 'off_cpu'),
		coalesce(string_agg(DISTINCT pid::VARCHAR, ', ' ORDER BY pid::VARCHAR), '') FROM sample`, nil, &on, &off, &pids)
	if err != nil {
		return fmt.Errorf("reading samples: %w", err)
	}
	switch {
	case on+off == 0:
		return fmt.Errorf("%w in the dataset: record with --level window or deep, while the job runs", ErrNoSamples)
	case f.OffCPU && off == 0:
		return fmt.Errorf("%w off the CPU in the dataset: no wait exceeded --off-cpu-threshold; omit --off-cpu for the %d on the CPU",
			ErrNoSamples, on)
	case !f.OffCPU && on == 0:
		return fmt.Errorf("%w on the CPU in the dataset: add --off-cpu for the %d off the CPU", ErrNoSamples, off)
	case len(f.PIDs)+len(f.TIDs) > 0:
		return fmt.Errorf("%w of that process or thread: the dataset has samples of pid %s", ErrNoSamples, pids)
	}
	return fmt.Errorf("%w match: omit --gil", ErrNoSamples)
}

// sampleRow is one line of Filter.samplesSQL.
type sampleRow struct {
	session         string
	pid, tid        int64
	cause, syscall  string
	stacked         bool // it has a stack_id
	stackID         int64
	weight, samples int64
}

type threadID struct {
	session  string
	pid, tid int64
}

func (r *sampleRow) thread() threadID { return threadID{r.session, r.pid, r.tid} }

// stack is a row as a stack. What a thread waited for is the leaf of a wait.
func (r *sampleRow) stack(known *Known) profile.Stack {
	s := profile.Stack{WeightNS: r.weight, Samples: r.samples}
	var frames []*profile.Frame
	switch {
	case r.stacked:
		frames, s.Cut = known.Of(r.stackID)
	case r.cause != "preempted": // which has no stack
		s.Cut = CutNone
	}
	reason := r.reason()
	if reason == "" {
		s.Frames = frames
		return s
	}
	leaf := known.Frames.Of(symbolize.Frame{Kind: symbolize.Kernel, Function: reason, Offset: -1})
	s.Frames = append(append(make([]*profile.Frame, 0, len(frames)+1), leaf), frames...)
	return s
}

// reason is why a thread was off the CPU, "" on it.
func (r *sampleRow) reason() string {
	switch {
	case r.cause == "preempted" && r.syscall != "":
		return "preempted in syscall " + r.syscall
	case r.cause != "" && r.syscall != "":
		return "syscall " + r.syscall
	case r.cause == "fault":
		return "page fault"
	}
	return r.cause
}

func parseFrames(all string) []symbolize.Frame {
	if all == "" {
		return nil
	}
	var frames []symbolize.Frame
	for _, fields := range strings.Split(all, frameSeparator) {
		frames = append(frames, parseFrame(fields))
	}
	return frames
}

func parseFrame(fields string) symbolize.Frame {
	f := strings.Split(fields, fieldSeparator)
	if len(f) != 7 {
		return symbolize.Frame{Kind: symbolize.Native, Offset: -1}
	}
	line, _ := strconv.ParseInt(f[3], 10, 32)
	offset, _ := strconv.ParseInt(f[6], 10, 64)
	return symbolize.Frame{
		Kind: symbolize.Kind(f[0]), Function: f[1], File: f[2], Line: int32(line), Module: f[4], BuildID: f[5], Offset: offset,
	}
}

// groups names what the samples are shown below: nothing where it would be the
// same for all.
func (f Filter) groups(ctx context.Context, db *dataset.DB, of []sampleRow) (map[threadID]string, error) {
	processes, err := names(ctx, db, `SELECT session_id, pid, 0,
		coalesce(any_value('rank ' || rank || '  '), '') || coalesce(any_value(command), any_value(exe), '') FROM process GROUP BY ALL`)
	if err != nil {
		return nil, err
	}
	threads, err := names(ctx, db, `SELECT session_id, pid, tid, any_value(name) FROM thread GROUP BY ALL`)
	if err != nil {
		return nil, err
	}
	several := map[threadID]bool{}
	for i := range of {
		several[threadID{of[i].session, of[i].pid, 0}] = true
	}
	groups := map[threadID]string{}
	for i := range of {
		id := of[i].thread()
		if _, known := groups[id]; known {
			continue
		}
		var parts []string
		if len(several) > 1 {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("pid %d  %s", id.pid, shortCommand(processes[threadID{id.session, id.pid, 0}]))))
		}
		if f.Threads {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("thread %d  %s", id.tid, threads[id])))
		}
		groups[id] = strings.ReplaceAll(strings.Join(parts, ": "), ";", ":")
	}
	return groups, nil
}

func names(ctx context.Context, db *dataset.DB, sql string) (map[threadID]string, error) {
	found := map[threadID]string{}
	err := db.Each(ctx, sql, func(row []driver.Value) error {
		found[threadID{text(row[0]), integer(row[1]), integer(row[2])}] = text(row[3])
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading names of processes and threads: %w", err)
	}
	return found, nil
}

// shortCommand drops the directories of a command line's words and what comes
// after the third.
func shortCommand(command string) string {
	words := strings.Fields(command)
	for i, word := range words {
		if strings.HasPrefix(word, "/") {
			words[i] = path.Base(word)
		}
	}
	return strings.Join(words[:min(len(words), 4)], " ")
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

func integer(value any) int64 {
	switch v := value.(type) {
	case int64:
		return v
	case int32:
		return int64(v)
	}
	return 0
}
