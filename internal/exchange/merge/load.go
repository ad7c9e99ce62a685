package merge

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// comparable are the calls that torch.profiler and a recording name alike. A trace has a backward node twice, as what the
// engine evaluates and as an operator of the node's name: the first is the recording's.
const comparable = "layer IN ('op', 'autograd', 'scope') AND coalesce(category, '') NOT IN ('compile', 'fused')"

// handed are calls that both name alike by their kind alone: an export of Nsight Systems has the runtime's functions where
// a recording has the names of kernels.
const handed = "layer = 'runtime' AND category IN ('launch', 'graph', 'copy', 'set', 'sync')"

// around is for how long before and after the trace calls of the recording can be those of the trace: clocks of one host
// that count from the epoch differ by less.
const around = farthest

// candidate is a process of a dataset.
type candidate struct {
	pid, nsPID int32
	rank       int64 // -1 is absent
	calls      int64
}

func candidates(m *merging, db *dataset.DB) (all []candidate, err error) {
	const query = `SELECT pid, max(coalesce(ns_pid, pid)), max(coalesce(rank, -1))::BIGINT, max(n)::BIGINT FROM process
		JOIN (SELECT pid, count(*) AS n FROM span WHERE layer <> 'device' GROUP BY pid) USING (pid) GROUP BY pid ORDER BY pid`
	err = db.Each(m.ctx, query, func(v []driver.Value) error {
		pid, _ := v[0].(int32)
		nsPID, _ := v[1].(int32)
		rank, _ := v[2].(int64)
		calls, _ := v[3].(int64)
		all = append(all, candidate{pid, nsPID, rank, calls})
		return nil
	})
	return all, err
}

// processes finds which process of the recording the trace is of: the one that was asked, or the one that has the pid
// which the trace names, as the job itself sees it, or the rank; or the only one.
func (m *merging) processes() error {
	recorded, err := candidates(m, m.recording)
	if err != nil {
		return fmt.Errorf("reading the recording's processes: %w", err)
	}
	traced, err := candidates(m, m.trace)
	if err != nil {
		return fmt.Errorf("reading the trace's processes: %w", err)
	}
	if len(traced) == 0 {
		return fmt.Errorf("%w: the trace has no call of a host", ErrNothingInCommon)
	}
	t := slices.MaxFunc(traced, func(a, b candidate) int { return int(a.calls - b.calls) })
	is := []func(candidate) bool{
		func(r candidate) bool { return r.pid == m.options.PID },
		func(r candidate) bool { return r.nsPID == t.pid },
		func(r candidate) bool { return t.rank >= 0 && r.rank == t.rank },
		func(candidate) bool { return len(recorded) == 1 },
	}
	if m.options.PID != 0 {
		is = is[:1]
	}
	for _, fits := range is {
		var found []candidate
		for _, r := range recorded {
			if fits(r) {
				found = append(found, r)
			}
		}
		if len(found) == 1 {
			m.pid, m.tracePID = found[0].pid, t.pid
			m.merged.PID = m.pid
			return nil
		}
	}
	return fmt.Errorf("%w: the trace is of pid %d, which the recording has not: give the recorded process with --pid",
		ErrNothingInCommon, t.pid)
}

// calls loads the calls of both and pairs them: operators, or where these have nothing in common the calls of the runtime.
func (m *merging) calls() error {
	if err := m.window(); err != nil {
		return err
	}
	for _, which := range []string{comparable, handed} {
		if err := m.loadBoth(which); err != nil {
			return err
		}
		if p, ok := pairThreads(m.recorded, m.traced); ok {
			m.paired(p)
			return m.unpaired()
		}
	}
	return fmt.Errorf("%w: is it of the same process and time?", ErrNothingInCommon)
}

// window finds when the trace was recorded, by its own clock, and refuses one of another time.
func (m *merging) window() error {
	query := fmt.Sprintf(`SELECT min(ts_ns), max(ts_ns + greatest(coalesce(duration_ns, 0), 0)),
		(SELECT any_value(replace(source, 'imported from ', '')) FROM session) FROM span WHERE pid = %d AND layer <> 'device'`, m.tracePID)
	if err := m.trace.Row(m.ctx, query, nil, &m.merged.StartNS, &m.merged.EndNS, &m.merged.Source); err != nil {
		return fmt.Errorf("reading the trace's window: %w", err)
	}
	var first, last int64
	query = fmt.Sprintf("SELECT min(ts_ns), max(ts_ns + greatest(coalesce(duration_ns, 0), 0)) FROM span WHERE pid = %d", m.pid)
	if err := m.recording.Row(m.ctx, query, nil, &first, &last); err != nil {
		return fmt.Errorf("reading the recording's time: %w", err)
	}
	if m.merged.EndNS+around < first || m.merged.StartNS-around > last {
		return fmt.Errorf("%w: the trace is of %s to %s, the recording of %s to %s", ErrNothingInCommon,
			moment(m.merged.StartNS), moment(m.merged.EndNS), moment(first), moment(last))
	}
	return nil
}

func moment(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.000") }

// loadBoth loads calls of one kind of both.
func (m *merging) loadBoth(which string) (err error) {
	traced, err := m.load(m.trace, fmt.Sprintf("pid = %d AND %s", m.tracePID, which))
	if err != nil {
		return err
	}
	m.recorded, err = m.load(m.recording, fmt.Sprintf("pid = %d AND %s AND ts_ns BETWEEN %d AND %d", m.pid, which,
		m.merged.StartNS-around, m.merged.EndNS+around))
	if err != nil {
		return err
	}
	m.numbers = renumbered(m.recorded, traced, m.pid, m.tracePID)
	m.traced, m.merged.Calls, m.merged.OtherThread = map[int32]thread{}, 0, 0
	for tid, names := range traced {
		m.merged.Calls += int64(names.calls())
		if number, ok := m.numbers[tid]; ok {
			m.traced[number] = names
		} else {
			m.merged.OtherThread += int64(names.calls())
		}
	}
	return nil
}

// paired keeps what the pairs say of the clocks.
func (m *merging) paired(p pairing) {
	m.pairing = p
	m.merged.StartNS -= p.offset
	m.merged.EndNS -= p.offset
	m.merged.Matched = int64(len(p.pairs))
	m.merged.OffsetNS, m.merged.OffsetLoNS, m.merged.OffsetHiNS, m.merged.LongerNS = &p.offset, &p.lo, &p.hi, &p.longer
	m.merged.Method = m.options.Method
}

func (m *merging) load(db *dataset.DB, where string) (map[int32]thread, error) {
	threads, names := map[int32]thread{}, map[string]string{}
	query := "SELECT span_id, tid, ts_ns, coalesce(duration_ns, -1), " +
		"CASE layer WHEN 'autograd' THEN 'node ' || name WHEN 'runtime' THEN category ELSE name END FROM span WHERE " +
		where + " ORDER BY ts_ns, span_id"
	err := db.Each(m.ctx, query, func(v []driver.Value) error {
		id, _ := v[0].(int64)
		tid, _ := v[1].(int32)
		start, _ := v[2].(int64)
		duration, _ := v[3].(int64)
		text, _ := v[4].(string)
		name, known := names[text]
		if !known {
			name = text
			names[text] = name
		}
		t := threads[tid]
		if t == nil {
			t = thread{}
			threads[tid] = t
		}
		t[name] = append(t[name], call{id, start, duration, name})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading calls: %w", err)
	}
	return threads, nil
}

// unpaired counts what has no partner, by why.
func (m *merging) unpaired() error {
	inTrace, inRecording := map[int64]bool{}, map[int64]bool{}
	for _, p := range m.pairing.pairs {
		inTrace[p.traced.id], inRecording[p.recorded.id] = true, true
	}
	slices, err := m.slices()
	if err != nil {
		return err
	}
	for tid, names := range m.traced {
		for name, calls := range names {
			for _, c := range calls {
				switch at := c.start - m.pairing.offset; {
				case inTrace[c.id]:
				case len(m.recorded[tid][name]) == 0:
					m.merged.OtherName++
				case len(slices) > 0 && !within(slices, at):
					m.merged.OutsideSlices++
				default:
					m.merged.Unmatched++
				}
			}
			for _, c := range m.recorded[tid][name] {
				if !inRecording[c.id] && c.start >= m.merged.StartNS && c.start < m.merged.EndNS {
					m.merged.RecordedOnly++
				}
			}
		}
	}
	return nil
}

// slices are when the recording had all calls; none where it always had.
func (m *merging) slices() (all [][2]int64, err error) {
	query := fmt.Sprintf("SELECT DISTINCT begin_ns, end_ns FROM slice WHERE pid = %d ORDER BY 1", m.pid)
	err = m.recording.Each(m.ctx, query, func(v []driver.Value) error {
		begin, _ := v[0].(int64)
		end, _ := v[1].(int64)
		all = append(all, [2]int64{begin, end})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading slices: %w", err)
	}
	return all, nil
}

func within(intervals [][2]int64, at int64) bool {
	return slices.ContainsFunc(intervals, func(i [2]int64) bool { return i[0] <= at && at < i[1] })
}
