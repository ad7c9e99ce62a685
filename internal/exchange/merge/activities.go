package merge

import (
	"bufio"
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/exchange/cupti"
	"github.com/ebpfprof/ebpfprof/internal/redact"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// segment is how much work of devices is put into a recording at once: what is in memory of it has a bound.
const segment = 400_000

// Activities puts what CUPTI said of a recording's processes into it: the chunks in a file, as tracer/activity wrote them.
// The sentences say of each process what was found, or why nothing was.
func Activities(ctx context.Context, recording, chunks string, o Options) ([]event.MergedTrace, []string, error) {
	f, err := os.Open(chunks)
	if err != nil {
		return nil, nil, fmt.Errorf("reading CUPTI's records: %w", err)
	}
	defer f.Close()
	a := &activities{options: o, path: recording, processes: map[int32]*traced{}, demangled: newNames()}
	if a.recording, err = dataset.Open(recording); err != nil {
		return nil, nil, err
	}
	defer a.recording.Close()
	a.reading = &merging{ctx: ctx, options: o, recording: a.recording}
	if err := a.begin(ctx); err != nil {
		return nil, nil, err
	}
	found, err := cupti.Read(bufio.NewReaderSize(f, 1<<20), a.wanted, a)
	if err != nil {
		return nil, nil, fmt.Errorf("reading CUPTI's records: %w", err)
	}
	// What was put off waits for calls that do not come any more.
	if err := a.settle(true); err != nil {
		return nil, nil, err
	}
	return a.end(found)
}

// activities is what CUPTI said on its way into a recording.
type activities struct {
	options   Options
	path      string
	recording *dataset.DB
	reading   *merging

	session, tool string
	to            event.Sink // the recording's files
	offset        int64      // the epoch minus CLOCK_MONOTONIC
	began         int64      // the recording, since the epoch
	last          int64      // number of a span
	processes     map[int32]*traced

	work      []cupti.Work // of this segment
	putOff    []cupti.Work // of the one before: their call was not there yet
	calls     calls        // of this segment
	before    calls        // of the one before
	spans     []event.Span
	sums      map[int64]*launched
	demangled names
}

// calls are those that gave a device work, by process and correlation. Where both the runtime and the driver say so it is
// the driver's, which the probes are on.
type calls map[correlation]cupti.Call

type correlation struct {
	pid    int32
	number uint32
}

// given is a call and what the device did for it.
type given struct {
	cupti.Call
	kind cupti.Kind
}

// launched is a recorded launch that has bounds, and what its rows of devices took.
type launched struct {
	hands
	took int64
	pid  int32
}

// traced is a process that CUPTI recorded in.
type traced struct {
	merged          event.MergedTrace
	sameIDs         bool // it numbers threads as the tracer does
	first           int32
	offsets, longer []int64
	rows            [2]int64 // when the first row of a device begins, and the last ends
	slices          [][2]int64
}

// mostOffsets bounds what is remembered for percentiles.
const mostOffsets = 1 << 20

func (a *activities) begin(ctx context.Context) error {
	const session = "SELECT session_id, coalesce(tool_version, ''), clock_offset_ns, started_ns FROM session LIMIT 1"
	err := a.recording.Row(ctx, session, nil, &a.session, &a.tool, &a.offset, &a.began)
	if err != nil {
		return fmt.Errorf("reading the recording's session: %w", err)
	}
	if err := a.recording.Row(ctx, "SELECT coalesce(max(span_id), 0) FROM span", nil, &a.last); err != nil {
		return fmt.Errorf("reading the recording's last number: %w", err)
	}
	a.calls, a.before = calls{}, calls{}
	a.to = appending{a.path, a.session, a.tool}
	if a.options.Redact {
		a.to = redact.NewSink(a.to)
	}
	return a.recording.Each(ctx, "SELECT pid, coalesce(max(ns_pid), pid) FROM process GROUP BY pid", func(v []driver.Value) error {
		pid, _ := v[0].(int32)
		own, _ := v[1].(int32)
		a.processes[pid] = &traced{sameIDs: own == pid, first: own,
			merged: event.MergedTrace{PID: pid, Source: "cupti", Method: event.MergedCUPTI}}
		return nil
	})
}

func (a *activities) wanted(pid int32) bool { return a.processes[pid] != nil }

// Call takes a call of the process.
func (a *activities) Call(c cupti.Call) error {
	key := correlation{c.PID, c.Correlation}
	if known, ok := a.calls[key]; !ok || c.Driver && !known.Driver {
		a.calls[key] = c
	}
	if len(a.calls) < 4*segment {
		return nil
	}
	return a.settle(false)
}

// Work takes what a device did.
func (a *activities) Work(w cupti.Work) error {
	if a.work = append(a.work, w); len(a.work) < segment {
		return nil
	}
	return a.settle(false)
}

// call is the one that gave a device the work.
func (a *activities) call(w cupti.Work) (cupti.Call, bool) {
	key := correlation{w.PID, w.Correlation}
	c, ok := a.calls[key]
	if o, there := a.before[key]; there && (!ok || o.Driver && !c.Driver) {
		return o, true
	}
	return c, ok
}

// settle puts a segment into the recording. Work whose call has not come waits for the next one, once.
func (a *activities) settle(last bool) error {
	var late []cupti.Work
	used := map[correlation]given{}
	for i, w := range slices.Concat(a.putOff, a.work) {
		if c, ok := a.call(w); ok {
			used[correlation{w.PID, w.Correlation}] = given{c, w.Kind}
		} else if !last && i >= len(a.putOff) {
			late = append(late, w)
		}
	}
	recorded, err := a.recorded(used)
	if err != nil {
		return err
	}
	for i, w := range slices.Concat(a.putOff, a.work) {
		h, ok := recorded[correlation{w.PID, w.Correlation}]
		if _, known := used[correlation{w.PID, w.Correlation}]; !known && !last && i >= len(a.putOff) {
			continue
		}
		a.add(w, h, ok)
	}
	a.putOff, a.work, a.before, a.calls = late, a.work[:0], a.calls, calls{}
	a.bounds()
	batch := &event.Batch{Spans: a.spans}
	a.spans = a.spans[:0]
	if len(batch.Spans) == 0 {
		return nil
	}
	return a.to.Write(batch)
}

// appending is a Sink that puts each batch into files of its own.
type appending struct{ path, session, tool string }

func (a appending) Write(b *event.Batch) error { return output.Append(a.path, a.session, a.tool, b) }

// recorded finds the recorded calls that calls are.
func (a *activities) recorded(used map[correlation]given) (map[correlation]hands, error) {
	if len(used) == 0 {
		return nil, nil
	}
	from, to := int64(1<<62), int64(0)
	pids := map[int32]bool{}
	for _, c := range used {
		from, to = min(from, c.StartNS+a.offset), max(to, c.EndNS+a.offset)
		pids[c.PID] = true
	}
	ours := map[int32]map[int32][]hands{}
	for pid := range pids {
		if err := a.slices(pid); err != nil {
			return nil, err
		}
		where := fmt.Sprintf("pid = %d AND ts_ns <= %d AND ts_ns + greatest(coalesce(duration_ns, 0), 0) >= %d", pid, to+apart, from-apart)
		byThread, err := a.reading.handing(a.recording, where, func(tid int32) (int32, bool) { return tid, true })
		if err != nil {
			return nil, err
		}
		ours[pid] = byThread
	}
	found := make(map[correlation]hands, len(used))
	for key, c := range used {
		p := a.processes[key.pid]
		c.StartNS, c.EndNS = c.StartNS+a.offset, c.EndNS+a.offset
		if h, ok := p.find(c, ours[key.pid]); ok {
			found[key] = h
		}
	}
	return found, nil
}

// slices loads when the recording had all calls of a process.
func (a *activities) slices(pid int32) (err error) {
	p := a.processes[pid]
	if p.slices == nil {
		a.reading.pid = pid
		if p.slices, err = a.reading.slices(); p.slices == nil {
			p.slices = [][2]int64{}
		}
	}
	return err
}

// find finds the recorded call that a call is, and counts it.
func (p *traced) find(c given, ours map[int32][]hands) (h hands, ok bool) {
	m := &p.merged
	m.Calls++
	if m.StartNS == 0 || c.StartNS < m.StartNS {
		m.StartNS = c.StartNS
	}
	m.EndNS = max(m.EndNS, c.EndNS)
	tid := c.Thread
	if !p.sameIDs && tid == p.first { // the main thread
		tid = m.PID
	}
	calls, known := ours[tid]
	if known && (p.sameIDs || tid == m.PID) {
		h, ok = ofThread(calls, c)
	} else {
		h, ok = alone(ours, c.Call)
	}
	switch {
	case ok:
		m.Matched++
		if len(p.offsets) < mostOffsets {
			p.offsets = append(p.offsets, c.StartNS-h.start)
			if h.duration >= 0 {
				p.longer = append(p.longer, h.duration-(c.EndNS-c.StartNS))
			}
		}
	case !known:
		m.OtherThread++
	case len(p.slices) > 0 && !within(p.slices, c.StartNS):
		m.OutsideSlices++
	default:
		m.Unmatched++
	}
	return h, ok
}

// bounds judges the launches that a segment has the rows of.
func (a *activities) bounds() {
	for _, l := range a.sums {
		m := &a.processes[l.pid].merged
		m.BoundsChecked++
		if l.lo <= l.took && l.took <= l.hi {
			m.BoundsHeld++
		}
	}
	a.sums = map[int64]*launched{}
}

// end writes what is to be said of each process.
func (a *activities) end(found map[int32]*cupti.Process) (all []event.MergedTrace, sentences []string, err error) {
	batch := &event.Batch{}
	for _, pid := range slices.Sorted(maps.Keys(found)) {
		p := found[pid]
		if pid == 0 {
			const others = "%d chunks of CUPTI's records came from processes that are not recorded, and were left out"
			sentences = append(sentences, fmt.Sprintf(others, p.Chunks))
			continue
		}
		t := a.processes[pid]
		for _, s := range p.States {
			if text := s.String(); text != "" {
				sentences = append(sentences, fmt.Sprintf("no device times of pid %d: %s", pid, text))
			} else {
				t.merged.Source = fmt.Sprintf("cupti %d", s.Version)
			}
		}
		if t.merged.StartNS == 0 { // no call of the host came: its window is that of its rows
			t.merged.StartNS, t.merged.EndNS = t.rows[0], t.rows[1]
		}
		for _, w := range lost(p.Counts) {
			w.TSNS = cmp.Or(t.merged.StartNS, a.began)
			batch.Warnings = append(batch.Warnings, w)
			sentences = append(sentences, fmt.Sprintf("pid %d: %d %s", pid, w.Count, w.Detail))
		}
		if p.Work+p.Counts.Calls == 0 {
			continue
		}
		t.percentiles()
		all = append(all, t.merged)
	}
	batch.MergedTraces = all
	a.recording.Close()
	if len(batch.MergedTraces)+len(batch.Warnings) > 0 {
		err = a.to.Write(batch)
	}
	return all, sentences, err
}

func (p *traced) percentiles() {
	if len(p.offsets) == 0 {
		return
	}
	m := &p.merged
	middle, lo, hi, longer := percentile(p.offsets, 50), percentile(p.offsets, 5), percentile(p.offsets, 95), int64(0)
	if len(p.longer) > 0 {
		longer = percentile(p.longer, 50)
	}
	m.OffsetNS, m.OffsetLoNS, m.OffsetHiNS, m.LongerNS = &middle, &lo, &hi, &longer
}

// lost are warnings about what is missing of a process's records.
func lost(c cupti.Counts) (all []event.Warning) {
	for _, w := range []event.Warning{
		{Source: "cupti_chunks", Count: c.Missing, Detail: "chunks of CUPTI's records did not come: rows of devices are missing"},
		{Source: "cupti_dropped", Count: c.Dropped, Detail: "records were dropped by CUPTI itself: rows of devices are missing"},
		{Source: "cupti_buffers", Count: c.Refused, Detail: "times CUPTI asked for a buffer when all were full: rows of devices are missing"},
		{Source: "cupti_bad", Count: c.Bad, Detail: "chunks or records of CUPTI's that make no sense were left out"},
		{Source: "cupti_unknown", Count: c.Unknown, Detail: "records of kinds that were not asked for were left out"},
		{Source: "cupti_unnamed", Count: c.Unnamed, Detail: "kernels have no name, since the chunk that had it did not come"},
	} {
		if w.Count > 0 {
			w.Kind = "lost"
			all = append(all, w)
		}
	}
	return all
}

// add makes the row of a piece of work.
func (a *activities) add(w cupti.Work, h hands, launchedHere bool) {
	p := a.processes[w.PID]
	a.last++
	s := event.Span{ID: a.last, PID: w.PID, StartNS: w.StartNS + a.offset, DurationNS: w.EndNS - w.StartNS,
		End: event.EndImported, Weight: 1, SequenceNumber: -1}
	s.Call, s.Detail = a.demangled.describe(w)
	s.Detail.DeviceTimeMethod = event.MergedCUPTI
	if launchedHere {
		id := h.id
		s.Detail.LaunchID = &id
		p.merged.Launched++
		if h.lo >= 0 && h.hi >= 0 && w.Kind != cupti.Wait {
			l := a.sums[id]
			if l == nil {
				l = &launched{hands: h, pid: w.PID}
				if a.sums == nil {
					a.sums = map[int64]*launched{}
				}
				a.sums[id] = l
			}
			l.took += s.DurationNS
		}
	}
	if p.merged.DeviceRows == 0 || s.StartNS < p.rows[0] {
		p.rows[0] = s.StartNS
	}
	p.rows[1] = max(p.rows[1], s.StartNS+s.DurationNS)
	p.merged.DeviceRows++
	a.spans = append(a.spans, s)
}
