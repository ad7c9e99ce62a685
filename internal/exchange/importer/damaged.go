package importer

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Durations that cannot be. A file's row may have a negative duration, or one of days:
// seen in traces of every maker. Its call was made all the same, and others stand in it
// or beside it, so that it is nested as if it had lasted as long as its like do. What is
// written keeps what the file says; answers leave it out (internal/dataset/lint).

const (
	// longest is a duration that no row has: a week.
	longest = 7 * 24 * 3600 * 1e9
	// A row cannot last more than aLot times as long as its like, where it ends more than
	// longEnough after the row that it began in, nor longer than the trace by more than
	// slack. internal/dataset/lint says the same of datasets.
	aLot       = 20
	longEnough = 1_000_000
	slack      = 1_000_000_000
	// fewAlike rows do not show what is usual.
	fewAlike = 4
	// mostKept durations of a kind are looked at, taken at random.
	mostKept = 64
)

// durations are how long calls of a kind last, from a sample of them, and the rows that
// may have lasted otherwise.
type durations struct {
	of       map[*event.Call]*sampled
	suspects map[int32]*event.Call // by row
	mended   map[int32]bool        // of these, those that got another end
	kinds    []uint16              // by row; 0 is of a device, or of too many kinds
	numbers  map[*event.Call]uint16
	calling  map[uint16]bool // kinds that call the runtime themselves
	random   *rand.Rand
}

type sampled struct {
	seen   int64
	kept   []int64
	median int64 // when seen was a power of two
}

func newDurations() durations {
	return durations{
		of: map[*event.Call]*sampled{}, suspects: map[int32]*event.Call{}, mended: map[int32]bool{},
		numbers: map[*event.Call]uint16{}, calling: map[uint16]bool{}, random: rand.New(rand.NewPCG(1, 2)),
	}
}

// add takes the next row of the host.
func (d *durations) add(i int32, r *row) {
	d.number(i, r.call)
	if r.duration < 0 || r.duration >= longest {
		d.suspects[i] = r.call
		return
	}
	s := d.of[r.call]
	if s == nil {
		s = &sampled{}
		d.of[r.call] = s
	}
	if r.duration > longEnough && r.call.Layer != "python" && (s.seen < fewAlike || r.duration > aLot*s.median) {
		d.suspects[i] = r.call
	}
	s.add(r.duration, d.random)
}

// number says of which kind a row is.
func (d *durations) number(i int32, call *event.Call) {
	k := d.numbers[call]
	if k == 0 && len(d.numbers) < math.MaxUint16 {
		k = uint16(len(d.numbers) + 1)
		d.numbers[call] = k
	}
	for len(d.kinds) < int(i) {
		d.kinds = append(d.kinds, 0)
	}
	d.kinds = append(d.kinds, k)
}

func (s *sampled) add(duration int64, random *rand.Rand) {
	s.seen++
	if len(s.kept) < mostKept {
		s.kept = append(s.kept, duration)
	} else if k := random.Int64N(s.seen); k < mostKept {
		s.kept[k] = duration
	}
	if s.seen&(s.seen-1) == 0 {
		s.median = s.middle()
	}
}

func (s *sampled) middle() int64 { return s.quantile(0.5) }

func (s *sampled) quantile(q float64) int64 {
	sorted := slices.Sorted(slices.Values(s.kept))
	return sorted[int(q*float64(len(sorted)-1))]
}

// usual is how long calls of a kind last, and how many were measured.
func (d *durations) usual(call *event.Call) (ns, alike int64) {
	s := d.of[call]
	if s == nil {
		return 0, 0
	}
	return s.middle(), s.seen
}

// mend gives rows of a thread whose durations cannot be, in a trace so long, those of
// their like.
func (d *durations) mend(all []place, trace int64) {
	if len(d.suspects) == 0 {
		return
	}
	for i := range all {
		p := &all[i]
		call := d.suspects[p.row]
		if p.row < 0 || call == nil {
			continue
		}
		if lasted := p.end - p.start; lasted <= 0 || lasted >= longest || lasted > trace+slack {
			usual, _ := d.usual(call)
			p.end = p.start + usual
			d.mended[p.row] = true
		}
	}
}

// leaves reports whether a row leaves the one around it as no call does, and where it may
// have ended: after what its like last, or where there are too few of them, with that row.
func (d *durations) leaves(p *place, around *openRow) (end int64, is bool) {
	call := d.suspects[p.row]
	if call == nil || around.mended || p.end <= around.end+longEnough {
		return 0, false
	}
	usual, alike := d.usual(call)
	if end = p.start + usual; alike < fewAlike {
		usual, end = around.end-around.start, around.end
	}
	if p.end-p.start <= aLot*usual {
		return 0, false
	}
	d.mended[p.row] = true
	return end, true
}

// room is how long a mended row may have lasted at the most, as the longest of its like
// did. A call of the runtime that fits into it is its own if its like make such calls.
func (d *durations) room(row int32) int64 {
	call := d.suspects[row]
	s := d.of[call]
	if s == nil || s.seen < fewAlike || !d.mended[row] || !d.calling[d.numbers[call]] {
		return 0
	}
	return s.quantile(1)
}

// learn sees from rows of a thread that are nested which kinds call the runtime there.
func (d *durations) learn(all []place, parents []int32) {
	clear(d.calling)
	for _, p := range all {
		if p.row < 0 || p.frame != runtimeCall {
			continue
		}
		if parent := parents[p.row]; parent >= 0 && !d.mended[parent] {
			d.calling[d.kinds[parent]] = true
		}
	}
}
