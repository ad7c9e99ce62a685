package export

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// Types of a TrackEvent.
const (
	sliceBegin = 1
	sliceEnd   = 2
	counterSet = 4
)

// perfettoWriter writes a Trace: packets of one sequence, names by number.
type perfettoWriter struct {
	*stream
	out  *bufio.Writer
	size int64
	cut  int64 // slices that did not fit any more
	who  names

	packet, event, interned, part message
	eventNames                    map[string]uint64 // numbers of names
	categories                    map[string]uint64
	notes                         map[string]uint64 // of debug annotations
	queues                        map[[2]int64]string
	categoryNames                 map[[2]string]string
	stages                        map[string]uint64 // kinds of device work, and queues

	threads   map[[2]int32]*thread
	processes map[int32]bool
	tracks    uint64
	devices   int64
	damaged   int64 // rows without a duration
	spread    int64 // slices on tracks of their own because they overlap
}

// thread has a lane for its rows that stand in each other, and more for those
// that do not.
type thread struct{ lanes []*lane }

type lane struct {
	track uint64
	open  []int64 // ends of the slices that are open, the outermost first
}

const sequence = 1

var perfetto = Format{Name: "perfetto", Help: "ui.perfetto.dev", write: (*stream).perfetto}

func (s *stream) perfetto(w io.Writer) (err error) {
	p := &perfettoWriter{
		stream: s, out: bufio.NewWriterSize(w, 1<<20), eventNames: map[string]uint64{}, categories: map[string]uint64{},
		notes:  map[string]uint64{},
		stages: map[string]uint64{}, queues: map[[2]int64]string{}, categoryNames: map[[2]string]string{}, threads: map[[2]int32]*thread{},
		processes: map[int32]bool{}, tracks: 1,
	}
	if p.who, err = s.names(); err != nil {
		return err
	}
	// The first packet of the sequence: nothing is interned yet.
	p.packet.reset()
	p.packet.number(10, sequence) // trusted_packet_sequence_id
	p.packet.number(13, 1)        // sequence_flags: SEQ_INCREMENTAL_STATE_CLEARED
	if err := p.flush(); err != nil {
		return err
	}
	if err := s.spans(perfettoColumns, p.span); err != nil {
		return err
	}
	if err := p.finish(); err != nil {
		return err
	}
	if err := p.counters(); err != nil {
		return err
	}
	s.result.leave(p.damaged, "rows have an invalid duration")
	s.result.leave(p.cut, "slices did not fit into the maximum size")
	return p.out.Flush()
}

// flush writes the packet as Trace.packet.
func (p *perfettoWriter) flush() error {
	p.part.reset()
	p.part.message(1, p.packet)
	p.size += int64(len(p.part))
	_, err := p.out.Write(p.part)
	return err
}

// begin starts a packet with a time.
func (p *perfettoWriter) begin(ts int64) {
	p.packet.reset()
	p.interned.reset()
	p.packet.number(8, uint64(ts)) // timestamp
	p.packet.number(58, 6)         // timestamp_clock_id: BUILTIN_CLOCK_BOOTTIME, the default of the UI
	p.packet.number(10, sequence)
	p.packet.number(13, 2) // SEQ_NEEDS_INCREMENTAL_STATE
}

// intern numbers a name and says it where it is used first: InternedData's
// event_categories 1, event_names 2, debug_annotation_names 3,
// gpu_specifications 24.
func (p *perfettoWriter) intern(table map[string]uint64, field protowire.Number, name string) uint64 {
	if id := table[name]; id != 0 {
		return id
	}
	id := uint64(len(table) + 1)
	table[name] = id
	var entry message
	entry.number(1, id)
	entry.text(2, name)
	p.interned.message(field, entry)
	return id
}

func (p *perfettoWriter) span(r *span) error {
	end, ok := p.until(r)
	if !ok {
		p.damaged++
		return nil
	}
	if p.options.MaxBytes > 0 && p.size > p.options.MaxBytes {
		p.cut++
		return nil
	}
	p.result.Slices++
	if r.layer == "device" {
		return p.stage(r, end)
	}
	return p.slice(r, end)
}

// slice is a TrackEvent of the innermost lane in which it stands whole.
func (p *perfettoWriter) slice(r *span, end int64) error {
	t := p.threads[[2]int32{r.pid, r.tid}]
	if t == nil {
		t = &thread{}
		p.threads[[2]int32{r.pid, r.tid}] = t
	}
	for i, l := range t.lanes {
		if err := p.close(l, r.ts); err != nil {
			return err
		}
		if n := len(l.open); n == 0 || l.open[n-1] >= end {
			if i > 0 {
				p.spread++
			}
			return p.open(l, r, end)
		}
	}
	l, err := p.addLane(r, len(t.lanes))
	if err != nil {
		return err
	}
	t.lanes = append(t.lanes, l)
	if len(t.lanes) > 1 {
		p.spread++
	}
	return p.open(l, r, end)
}

// close ends the slices of a lane that are over at t.
func (p *perfettoWriter) close(l *lane, t int64) error {
	for n := len(l.open); n > 0 && l.open[n-1] <= t; n = len(l.open) {
		p.begin(l.open[n-1])
		p.event.reset()
		p.event.number(9, sliceEnd)
		p.event.number(11, l.track)
		p.packet.message(11, p.event) // track_event
		if err := p.flush(); err != nil {
			return err
		}
		l.open = l.open[:n-1]
	}
	return nil
}

func (p *perfettoWriter) open(l *lane, r *span, end int64) error {
	l.open = append(l.open, end)
	p.begin(r.ts)
	p.event.reset()
	p.event.number(9, sliceBegin)
	p.event.number(11, l.track)
	category := r.layer
	if r.category.Valid {
		key := [2]string{r.layer, r.category.String}
		if category = p.categoryNames[key]; category == "" {
			category = r.layer + "." + r.category.String
			p.categoryNames[key] = category
		}
	}
	p.event.number(3, p.intern(p.categories, 1, category)) // category_iids
	p.event.number(10, p.intern(p.eventNames, 2, r.name))  // name_iid
	if r.from {
		p.event.fixed(47, uint64(r.target)) // flow_ids
	}
	if r.to {
		p.event.fixed(48, uint64(r.id)) // terminating_flow_ids
	}
	p.annotate(r)
	if len(p.interned) > 0 {
		p.packet.message(12, p.interned) // interned_data
	}
	p.packet.message(11, p.event)
	return p.flush()
}

// annotate says what the row has beside its time (TrackEvent.debug_annotations 4;
// DebugAnnotation: name_iid 1, int_value 4, double_value 5, string_value 6).
func (p *perfettoWriter) annotate(r *span) {
	number := func(name string, v int64, ok bool) {
		if ok {
			p.part.reset()
			p.part.number(1, p.intern(p.notes, 3, name))
			p.part.number(4, uint64(v))
			p.event.message(4, p.part)
		}
	}
	text := func(name, v string, ok bool) {
		if ok {
			p.part.reset()
			p.part.number(1, p.intern(p.notes, 3, name))
			p.part.text(6, v)
			p.event.message(4, p.part)
		}
	}
	number("span_id", r.id, true)
	number("bytes", r.bytes.Int64, r.bytes.Valid)
	number("flops", r.flops.Int64, r.flops.Valid)
	number("stream", r.stream.Int64, r.stream.Valid)
	number("correlation_id", r.correlation.Int64, r.correlation.Valid)
	number("sequence_number", r.sequence.Int64, r.sequence.Valid)
	text("input_dims", r.dims.String, r.dims.Valid)
	text("status", r.status.String, r.status.Valid && r.status.String != "ok")
	text("end", r.end, r.end == "unfinished" || r.end == "next_entry")
	if r.weight != 1 {
		p.part.reset()
		p.part.number(1, p.intern(p.notes, 3, "stands for calls"))
		p.part.double(5, r.weight)
		p.event.message(4, p.part)
	}
}

// addLane describes a track: TrackDescriptor 60 with uuid 1, name 2, parent_uuid
// 5, thread 4 (ThreadDescriptor: pid 1, tid 2, thread_name 5).
func (p *perfettoWriter) addLane(r *span, n int) (*lane, error) {
	if err := p.process(r.pid); err != nil {
		return nil, err
	}
	p.tracks++
	l := &lane{track: p.tracks}
	var d message
	d.number(1, l.track)
	d.number(5, processTrack(r.pid))
	name := p.who.threads[[2]int32{r.pid, r.tid}]
	if n == 0 {
		var t message
		t.number(1, uint64(uint32(r.pid)))
		t.number(2, uint64(uint32(r.tid)))
		t.text(5, name)
		d.message(4, t)
	} else {
		d.text(2, fmt.Sprintf("%s %d, what overlaps (%d)", name, r.tid, n))
	}
	return l, p.descriptor(d)
}

// processTrack keeps apart from the numbers that are given out.
func processTrack(pid int32) uint64 { return 1<<40 | uint64(uint32(pid)) }

func (p *perfettoWriter) process(pid int32) error {
	if p.processes[pid] {
		return nil
	}
	p.processes[pid] = true
	var d, process message
	process.number(1, uint64(uint32(pid))) // ProcessDescriptor: pid 1, process_name 6
	process.text(6, p.who.processes[pid])
	d.number(1, processTrack(pid))
	d.message(3, process)
	return p.descriptor(d)
}

func (p *perfettoWriter) descriptor(d message) error {
	p.packet.reset()
	p.packet.number(10, sequence)
	p.packet.message(60, d)
	return p.flush()
}

// queueName is a stream's, made once.
func (p *perfettoWriter) queueName(r *span) string {
	key := [2]int64{int64(r.pid), r.stream.Int64}
	if name, ok := p.queues[key]; ok {
		return name
	}
	name := fmt.Sprintf("stream %d", r.stream.Int64)
	if rank, ok := p.who.ranks[r.pid]; ok && len(p.who.ranks) > 1 {
		name = fmt.Sprintf("rank %d, %s", rank, name)
	}
	p.queues[key] = name
	return name
}

// stage is a GpuRenderStageEvent (53), which may overlap others: event_id 1,
// duration 2, gpu_id 11, hw_queue_iid 13, stage_iid 14, name 17.
func (p *perfettoWriter) stage(r *span, end int64) error {
	p.begin(r.ts)
	queue := p.queueName(r)
	p.event.reset()
	p.event.number(1, uint64(r.id))
	p.event.number(2, uint64(end-r.ts))
	p.event.number(11, uint64(uint32(r.device.Int32)))
	p.event.number(13, p.specification(queue))
	p.event.number(14, p.specification(cmp.Or(r.category.String, "work")))
	p.event.text(17, r.name)
	for _, extra := range []struct {
		name string
		v    int64
		ok   bool
	}{{"correlation_id", r.correlation.Int64, r.correlation.Valid}, {"bytes", r.bytes.Int64, r.bytes.Valid}, {"launch span_id", r.launch.Int64,
		r.launch.Valid}} {
		if extra.ok { // extra_data 6: name 1, value 2
			p.part.reset()
			p.part.text(1, extra.name)
			p.part.text(2, strconv.FormatInt(extra.v, 10))
			p.event.message(6, p.part)
		}
	}
	if len(p.interned) > 0 {
		p.packet.message(12, p.interned)
	}
	p.packet.message(53, p.event)
	p.devices++
	return p.flush()
}

// specification is an InternedGpuRenderStageSpecification: iid 1, name 2,
// category 4 (COMPUTE is 2).
func (p *perfettoWriter) specification(name string) uint64 {
	if id := p.stages[name]; id != 0 {
		return id
	}
	id := uint64(len(p.stages) + 1)
	p.stages[name] = id
	var entry message
	entry.number(1, id)
	entry.text(2, name)
	entry.number(4, 2)
	p.interned.message(24, entry)
	return id
}

// finish ends what is open, thread by thread.
func (p *perfettoWriter) finish() error {
	var keys [][2]int32
	for key := range p.threads {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, key := range keys {
		for _, l := range p.threads[key].lanes {
			if err := p.close(l, 1<<63-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// counters are tracks of readings: TrackDescriptor.counter 8, TrackEvent's
// double_counter_value 44.
func (p *perfettoWriter) counters() error {
	rows, err := p.db.Query(p.ctx, "SELECT source || ' ' || coalesce(device || ' ', '') || name || ' (' || unit || ')', ts_ns, value FROM "+
		"counter ORDER BY 1, 2 LIMIT 2000000")
	if err != nil {
		return err
	}
	defer rows.Close()
	track, last := uint64(0), ""
	for rows.Next() {
		var name string
		var ts int64
		var v float64
		if err := rows.Scan(&name, &ts, &v); err != nil {
			return err
		}
		if name != last {
			p.tracks++
			track, last = p.tracks, name
			var d message
			d.number(1, track)
			d.text(2, name)
			d.message(8, nil)
			if err := p.descriptor(d); err != nil {
				return err
			}
		}
		p.begin(ts)
		p.event.reset()
		p.event.number(9, counterSet)
		p.event.number(11, track)
		p.event.double(44, v)
		p.packet.message(11, p.event)
		if err := p.flush(); err != nil {
			return err
		}
	}
	return rows.Err()
}
