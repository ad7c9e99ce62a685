package pyramid

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

const base = 1_790_000_000_000_000_000

// recording writes calls into a new dataset, in files of so many.
func recording(t testing.TB, spans []event.Span, perFile int) *dataset.DB {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	d, err := output.Create(dir, output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = d.Session(event.Recording{ID: "s", StartedNS: base})
	for len(spans) > 0 && err == nil {
		n := min(perFile, len(spans))
		err = errors.Join(d.Write(&event.Batch{Spans: spans[:n]}), d.Rotate())
		spans = spans[n:]
	}
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	return open(t, dir)
}

func open(t testing.TB, dir string) *dataset.DB {
	t.Helper()
	db, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// random are nested calls of several threads and streams, with durations from 0 to a tenth of a second, some without an
// end and some that begin together.
func random(r *rand.Rand, calls int) (all []event.Span) {
	names := make([]*event.Call, 40)
	for i := range names {
		names[i] = &event.Call{Layer: []string{"op", "scope", "runtime"}[i%3], Name: fmt.Sprintf("call%d", i)}
	}
	id := int64(0)
	span := func(lane int32, start, duration int64) event.Span {
		id++
		s := event.Span{ID: id, StartNS: base + start, DurationNS: duration, PID: 100 + lane/4, TID: 100 + lane, Call: names[r.IntN(len(names))],
			Weight:         1,
			SequenceNumber: -1, End: event.EndExitSite}
		if lane == 7 {
			stream := int64(r.IntN(2))
			s.TID, s.Call, s.Detail = 0, &event.Call{Layer: "device", Category: "kernel", Name: "gemm"}, &event.Detail{Stream: &stream,
				DeviceID: new(int32)}
		}
		return s
	}
	var nest func(lane int32, from, until int64, depth int)
	nest = func(lane int32, from, until int64, depth int) {
		for at := from; at < until && len(all) < calls; {
			duration := min(int64(math.Exp(r.Float64()*math.Log(1e8))), until-at)
			if r.IntN(20) == 0 {
				duration = 0
			}
			if r.IntN(50) == 0 {
				s := span(lane, at, -1)
				s.End = event.EndUnfinished
				all = append(all, s)
			}
			all = append(all, span(lane, at, duration))
			if depth < 4 && duration > 2000 && r.IntN(2) == 0 {
				nest(lane, at+int64(r.IntN(2))*duration/7, at+duration, depth+1)
			}
			at += duration + int64(r.IntN(3))*int64(math.Exp(r.Float64()*math.Log(1e7)))
		}
	}
	for lane := range int32(8) {
		before := len(all)
		calls += before
		nest(lane, int64(r.IntN(1e6)), 4e9, 0)
		calls -= before
	}
	return all
}

func build(t testing.TB, db *dataset.DB, limit int64) *Pyramid {
	t.Helper()
	var rows int64
	if err := db.Row(t.Context(), "SELECT count(*) FROM span", nil, &rows); err != nil {
		t.Fatal(err)
	}
	p := New(base, rows, 1e10)
	if limit > 0 {
		p.limit = limit
	}
	p.every = 16
	if err := p.Build(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return p
}

// sums are what a window has of a lane.
type sums struct{ busy, count int64 }

// drawn adds up a picture's rectangles: of calls the part inside the window, of cells whole bins.
func drawn(picture *Picture, w Window) map[int]sums {
	all := map[int]sums{}
	for _, r := range picture.Rects {
		s := all[r.Lane]
		if r.Flags&Cell != 0 {
			s.busy += r.Busy
			s.count += r.Count
		} else {
			s.busy += max(0, min(r.Start+max(r.Duration, 0), w.Until)-max(r.Start, w.From))
			if r.Start >= w.From && r.Start < w.Until {
				s.count++
			}
		}
		all[r.Lane] = s
	}
	return all
}

// asked is the same by SQL, of all lanes.
func asked(t testing.TB, db *dataset.DB, from, until int64) map[Key]sums {
	t.Helper()
	from, until = from+base, until+base
	query := fmt.Sprintf(`SELECT session_id, pid, tid, layer = 'device', CASE layer WHEN 'device' THEN device_id ELSE 0 END, CASE layer
		WHEN 'device' THEN stream ELSE 0 END,
		sum(greatest(0, least(ts_ns + coalesce(duration_ns, 0), %[2]d) - greatest(ts_ns, %[1]d)))::BIGINT,
		count(*) FILTER (ts_ns >= %[1]d AND ts_ns < %[2]d) FROM span GROUP BY ALL`, from, until)
	rows, err := db.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[Key]sums{}
	for rows.Next() {
		var k Key
		var s sums
		if err := rows.Scan(&k.Session, &k.PID, &k.TID, &k.Device, &k.DeviceID, &k.Stream, &s.busy, &s.count); err != nil {
			t.Fatal(err)
		}
		all[k] = s
	}
	if rows.Err() != nil || len(all) == 0 {
		t.Fatal(rows.Err(), len(all))
	}
	return all
}

func lanesOf(p *Pyramid) (all []int) {
	for i := range p.Lanes() {
		all = append(all, i)
	}
	return all
}

// At every level, of windows of whole bins, time and number of calls of every lane are those that SQL finds, to the
// nanosecond; of other windows the time differs by what the bins at both ends have, for each depth.
func TestEveryLevelHasTheTimeAndTheCallsThatSQLHas(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	db := recording(t, random(r, 800), 2000)
	for _, limit := range []int64{0, 3000, 300} {
		p := build(t, db, limit)
		if limit > 0 && p.Progress().Lowest == 0 {
			t.Errorf("all levels are kept with a limit of %d", limit)
		}
		lanes := lanesOf(p)
		if len(lanes) < 8 {
			t.Fatalf("%d lanes", len(lanes))
		}
		for level := range 17 {
			width := Width(level)
			for range 2 {
				from := r.Int64N(4e9)
				until := from + 1 + r.Int64N(min(4e9, width*5000))
				whole := Window{From: from / width * width, Until: (until/width + 1) * width, Level: level, Lanes: lanes, Depth: maxDepth + 1,
					Most: 1 << 30}
				odd := whole
				odd.From, odd.Until = from, until
				for i, w := range []Window{whole, odd} {
					picture, err := p.Query(t.Context(), db, w)
					if err != nil {
						t.Fatal(err)
					}
					if picture.Level != level || picture.Coarsened != 0 {
						t.Fatalf("level %d was drawn as %d", level, picture.Level)
					}
					got := drawn(picture, w)
					all := asked(t, db, w.From, w.Until)
					for at, lane := range p.Lanes() {
						want := all[lane.Key]
						off := int64(0)
						if i == 1 {
							off = 2 * width * int64(lane.Depth())
						} else if got[at].count != want.count {
							t.Errorf("limit %d, level %d, %d to %d, %+v: %d calls, SQL has %d", limit, level, w.From, w.Until, lane.Key, got[at].count,
								want.count)
						}
						if d := got[at].busy - want.busy; d < -off || d > off {
							t.Errorf("limit %d, level %d, %d to %d, %+v: busy %d, SQL has %d", limit, level, w.From, w.Until, lane.Key, got[at].busy, want.busy)
						}
					}
				}
			}
		}
	}
}

// What is read from the files for a window is what a pyramid that keeps all levels has: the same calls and cells, at the
// same depths.
func TestALevelThatIsNotKeptIsDrawnAsOneThatIs(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	db := recording(t, random(r, 800), 1000)
	all, few := build(t, db, 1<<30), build(t, db, 300)
	lowest := few.Progress().Lowest
	if all.Progress().Lowest != 0 || lowest < 4 {
		t.Fatalf("kept from level %d and %d on", all.Progress().Lowest, lowest)
	}
	for level := range lowest {
		for range 10 {
			from := r.Int64N(4e9)
			width := Width(level)
			w := Window{From: from / width * width, Until: (from/width + 1 + r.Int64N(3000)) * width, Level: level, Lanes: lanesOf(all), Depth: 3,
				Most: 1 << 30}
			want, err := all.Query(t.Context(), db, w)
			if err != nil {
				t.Fatal(err)
			}
			got, err := few.Query(t.Context(), db, w)
			if err != nil {
				t.Fatal(err)
			}
			order := func(a, b Rect) int {
				return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Depth, b.Depth), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Duration,
					b.Duration),
					cmp.Compare(a.Name, b.Name), cmp.Compare(a.Flags, b.Flags))
			}
			slices.SortFunc(want.Rects, order)
			slices.SortFunc(got.Rects, order)
			// Which of many names has the most time in a cell is known where the cell was made of calls.
			for _, rects := range [][]Rect{want.Rects, got.Rects} {
				for i := range rects {
					if rects[i].Flags&Cell != 0 {
						rects[i].Name, rects[i].Share = 0, 0
					}
				}
			}
			if !slices.Equal(got.Rects, want.Rects) {
				t.Fatalf("level %d, %+v: %d rectangles, %d with all levels in memory", level, w, len(got.Rects), len(want.Rects))
			}
		}
	}
}

// nested are calls inside of each other.
func nested(depth int) (all []event.Span) {
	call := &event.Call{Layer: "op", Name: "deep"}
	for i := range depth {
		all = append(all, event.Span{ID: int64(i + 1), StartNS: base + int64(i), DurationNS: int64(10*depth - 2*i), PID: 1, TID: 1, Call: call,
			Weight: 1, SequenceNumber: -1})
	}
	return all
}

func TestDeepNestsShareOneRow(t *testing.T) {
	db := recording(t, nested(10_000), 1<<20)
	p := build(t, db, 0)
	if depth := p.Lanes()[0].Depth(); depth != maxDepth+1 {
		t.Errorf("%d rows", depth)
	}
	picture, err := p.Query(t.Context(), db, Window{From: 0, Until: 1 << 20, Level: 0, Lanes: []int{0}, Depth: maxDepth + 1, Most: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var deeper, count int64
	for _, r := range picture.Rects {
		count += r.Count
		if r.Flags&Deeper != 0 {
			deeper += r.Count
		}
	}
	if count != 10_000 || deeper != 10_000-maxDepth {
		t.Errorf("%d calls, %d of them deep", count, deeper)
	}
}

// Times that no clock has are counted, and take nothing from the others.
func TestTimesThatNoClockHasAreCounted(t *testing.T) {
	call := &event.Call{Layer: "op", Name: "x"}
	span := func(id, start, duration int64) event.Span {
		return event.Span{ID: id, StartNS: start, DurationNS: duration, PID: 1, TID: 1, Call: call, Weight: 1, SequenceNumber: -1}
	}
	db := recording(t, []event.Span{
		span(1, math.MinInt64/2, 5), span(2, -7, 5), span(3, base, 100), span(4, base+50, math.MaxInt64-base-60), span(5, math.MaxInt64-1, 1),
	}, 1<<20)
	p := build(t, db, 0)
	if got := p.Progress(); got.OutOfRange != 3 || got.Rows != 5 {
		t.Errorf("%+v", got)
	}
	picture, err := p.Query(t.Context(), db, Window{From: 0, Until: 1000, Level: 0, Lanes: []int{0}, Depth: 9, Most: 100})
	if err != nil || len(picture.Rects) != 2 {
		t.Errorf("%+v, %v", picture, err)
	}
}

// With more rectangles than are wanted the picture is coarser, and says so; no call is missing.
func TestAPictureIsCoarsenedAndNotCut(t *testing.T) {
	db := recording(t, random(rand.New(rand.NewPCG(5, 6)), 800), 1<<20)
	p := build(t, db, 0)
	picture, err := p.Query(t.Context(), db, Window{From: 0, Until: 1 << 33, Level: 2, Lanes: lanesOf(p), Depth: 9, Most: 500})
	if err != nil || picture.Coarsened == 0 || picture.Coarsened != picture.Level-2 || len(picture.Rects) > 500 {
		t.Fatalf("level %d, coarsened %d, %d rectangles, %v", picture.Level, picture.Coarsened, len(picture.Rects), err)
	}
	var calls int64
	for _, r := range picture.Rects {
		calls += r.Count
	}
	if want := p.Progress().Rows; calls != want {
		t.Errorf("%d calls, %d were recorded", calls, want)
	}
}
