package stacks

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/profile"
	"github.com/ebpfprof/ebpfprof/internal/query"
	"github.com/ebpfprof/ebpfprof/symbolize"
)

// ErrNoSamples is returned by Load when no sample of the dataset is asked for.
var ErrNoSamples = errors.New("no samples")

// Filter chooses samples. The zero value is all threads, on the CPU.
type Filter struct {
	PIDs, TIDs []int
	OffCPU     bool
	GIL        bool // only while the thread held its interpreter's lock
	Threads    bool // each thread by itself, below its process
}

// Load adds up the samples of a dataset by stack. Where it has samples of
// several processes, or Filter.Threads asks for it, the stacks are grouped.
func Load(ctx context.Context, db *query.DB, f Filter) (profile.Profile, error) {
	l := loader{filter: f, frames: profile.NewFrames(), texts: map[string]*profile.Frame{}}
	if err := db.Each(ctx, f.sql(), l.add); err != nil {
		return nil, fmt.Errorf("reading samples: %w", err)
	}
	if len(l.profile) == 0 {
		return nil, f.explain(ctx, db)
	}
	groups, err := f.groups(ctx, db, l.threads)
	if err != nil {
		return nil, err
	}
	for i := range l.profile {
		l.profile[i].Group = groups[l.threads[i]]
	}
	return l.profile, nil
}

// loader collects the rows of Filter.sql.
type loader struct {
	filter  Filter
	frames  *profile.Frames
	texts   map[string]*profile.Frame // by how the database writes them
	profile profile.Profile
	threads []threadID // of each stack
}

func (l *loader) add(row []any) error {
	r := sampleRow{text(row[0]), integer(row[1]), integer(row[2]), text(row[3]), text(row[4]), integer(row[5]), integer(row[6]), text(row[7]), text(row[8])}
	l.profile = append(l.profile, l.stack(&r))
	l.threads = append(l.threads, r.thread())
	return nil
}

const (
	frameSeparator = "\x1e"
	fieldSeparator = "\x1f"
)

// sql adds up in the database, and has it write the frames as text: the driver
// would make a map of each.
func (f Filter) sql() string {
	tid := "0"
	if f.Threads {
		tid = "tid"
	}
	return fmt.Sprintf(`WITH
s AS (SELECT session_id, pid, %s AS tid, coalesce(cause, '') AS cause, coalesce(syscall, '') AS syscall, stack_id,
	sum(weight_ns)::BIGINT AS weight_ns, count(*) AS samples FROM sample WHERE %s GROUP BY ALL),
t AS (SELECT stack_id, any_value(frames) AS frames, any_value(status) AS status FROM stack GROUP BY stack_id)
SELECT s.session_id, s.pid, s.tid, s.cause, s.syscall, s.weight_ns, s.samples,
	CASE WHEN s.stack_id IS NULL THEN 'none' ELSE coalesce(t.status, 'lost') END,
	%s
FROM s LEFT JOIN t USING (stack_id) ORDER BY ALL`, tid, f.where(), framesText("t.frames"))
}

// framesText is the expression that writes a column of frames as text, which
// parseFrames reads.
func framesText(column string) string {
	return `coalesce(array_to_string(list_transform(` + column + `, lambda f: concat_ws(chr(31), f.kind, coalesce(f.function, ''), coalesce(f.file, ''),
		coalesce(f.line, 0), coalesce(f.module, ''), coalesce(f.build_id, ''), coalesce(f."offset", -1))), chr(30)), '')`
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

// explain says why there is no sample that the filter lets through.
func (f Filter) explain(ctx context.Context, db *query.DB) error {
	r, err := db.Run(ctx, `SELECT count(*) FILTER (state = 'on_cpu'), count(*) FILTER (state = 'off_cpu'),
		coalesce(string_agg(DISTINCT pid::VARCHAR, ', ' ORDER BY pid::VARCHAR), '') FROM sample`)
	if err != nil {
		return fmt.Errorf("reading samples: %w", err)
	}
	on, off, pids := integer(r.Rows[0][0]), integer(r.Rows[0][1]), text(r.Rows[0][2])
	switch {
	case on+off == 0:
		return fmt.Errorf("%w in the dataset: record with --level window or deep, while the job runs", ErrNoSamples)
	case f.OffCPU && off == 0:
		return fmt.Errorf("%w off the CPU in the dataset: nothing waited for longer than --off-cpu-threshold; leave --off-cpu out for the %d on it", ErrNoSamples, on)
	case !f.OffCPU && on == 0:
		return fmt.Errorf("%w on the CPU in the dataset: add --off-cpu for the %d off it", ErrNoSamples, off)
	case len(f.PIDs)+len(f.TIDs) > 0:
		return fmt.Errorf("%w of that process or thread: the dataset has some of pid %s", ErrNoSamples, pids)
	}
	return fmt.Errorf("%w are left: leave --gil out", ErrNoSamples)
}

// sampleRow is one line of Filter.sql.
type sampleRow struct {
	session         string
	pid, tid        int64
	cause, syscall  string
	weight, samples int64
	status, frames  string
}

type threadID struct {
	session  string
	pid, tid int64
}

func (r *sampleRow) thread() threadID { return threadID{r.session, r.pid, r.tid} }

// stack is a row as a stack. What a thread waited for is the leaf of a wait.
func (l *loader) stack(r *sampleRow) profile.Stack {
	s := profile.Stack{WeightNS: r.weight, Samples: r.samples}
	if reason := r.reason(l.filter.OffCPU); reason != "" {
		s.Frames = append(s.Frames, l.frames.Of(symbolize.Frame{Kind: symbolize.Kernel, Function: reason, Offset: -1}))
	}
	if r.frames != "" {
		for _, fields := range strings.Split(r.frames, frameSeparator) {
			s.Frames = append(s.Frames, l.frame(fields))
		}
	}
	switch {
	case r.status == "none" && r.cause == "preempted": // as it should be
	case r.status != "complete":
		s.Cut = r.status
	}
	return s
}

func (l *loader) frame(fields string) *profile.Frame {
	if known := l.texts[fields]; known != nil {
		return known
	}
	fields = strings.Clone(fields) // not the whole stack's text
	f := l.frames.Of(parseFrame(fields))
	l.texts[fields] = f
	return f
}

// reason is why a thread was off the CPU, "" on it.
func (r *sampleRow) reason(wait bool) string {
	switch {
	case r.cause == "preempted" && r.syscall != "":
		return "preempted in syscall " + r.syscall
	case wait && r.syscall != "":
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
	return symbolize.Frame{Kind: symbolize.Kind(f[0]), Function: f[1], File: f[2], Line: int32(line), Module: f[4], BuildID: f[5], Offset: offset}
}

// groups names what the samples are shown below: nothing where it would be the
// same for all.
func (f Filter) groups(ctx context.Context, db *query.DB, of []threadID) (map[threadID]string, error) {
	processes, err := names(ctx, db, `SELECT session_id, pid, 0, coalesce(any_value('rank ' || rank || '  '), '') || coalesce(any_value(command), any_value(exe), '') FROM process GROUP BY ALL`)
	if err != nil {
		return nil, err
	}
	threads, err := names(ctx, db, `SELECT session_id, pid, tid, any_value(name) FROM thread GROUP BY ALL`)
	if err != nil {
		return nil, err
	}
	several := map[threadID]bool{}
	for _, id := range of {
		several[threadID{id.session, id.pid, 0}] = true
	}
	groups := map[threadID]string{}
	for _, id := range of {
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

func names(ctx context.Context, db *query.DB, sql string) (map[threadID]string, error) {
	r, err := db.Run(ctx, sql)
	if err != nil {
		return nil, fmt.Errorf("reading names of processes and threads: %w", err)
	}
	found := map[threadID]string{}
	for _, row := range r.Rows {
		found[threadID{text(row[0]), integer(row[1]), integer(row[2])}] = text(row[3])
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
