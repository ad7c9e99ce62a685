package page

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/page/pyramid"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// lanes holds the timeline's pyramid, which is built once in the background.
type lanes struct {
	ready   chan struct{} // closed when base and p are known
	built   chan struct{} // closed when all calls are read, or cannot be
	before  *lanes        // of the edition before, whose lanes and threads keep their numbers; nil once they have
	p       *pyramid.Pyramid
	firstNS int64 // the recording's first row, from which --from counts
	spanNS  int64 // from the base to the last row
	err     error
	threads map[threadKey]thread
	keys    []threadKey // of the threads, by their numbers

	mu     sync.Mutex
	failed error // of the build
}

type threadKey struct {
	session  string
	pid, tid int32
}

type thread struct {
	number     int
	name, role string
	sampled    bool
}

// widest is the range of times that is drawn.
const widest = int64(1) << 52

// buildLanes reads the small tables, then all calls.
func (s *edition) buildLanes() {
	l := s.lanes
	defer close(l.built)
	ctx := s.life
	err := s.pool.use(ctx, func(db *dataset.DB) error { return l.begin(ctx, db) })
	l.err = err
	close(l.ready)
	if err != nil {
		return
	}
	err = l.p.Build(ctx, s.base)
	l.mu.Lock()
	l.failed = err
	l.mu.Unlock()
}

// begin finds where the recording begins and how many calls it has.
func (l *lanes) begin(ctx context.Context, db *dataset.DB) error {
	const rows = "(SELECT ts_ns AS ts FROM span UNION ALL SELECT ts_ns FROM sample)"
	var first, last sql.NullInt64
	var total int64
	if err := db.Row(ctx, "SELECT min(ts), max(ts), (SELECT count(*) FROM span) FROM "+rows, nil, &first, &last, &total); err != nil {
		return err
	}
	base, end := first.Int64, last.Int64
	if end-base > widest || end-base < 0 { // rows with times of no clock: what lies around most of them is drawn
		query := fmt.Sprintf(`WITH middle AS (SELECT quantile_disc(ts, 0.5) AS m FROM %s)
			SELECT min(ts), max(ts) FROM %s, middle WHERE ts::HUGEINT - m BETWEEN -%d AND %d`, rows, rows, widest/2, widest/2-1)
		if err := db.Row(ctx, query, nil, &base, &end); err != nil {
			return err
		}
	}
	l.firstNS, l.spanNS = first.Int64, end-base
	l.p = pyramid.New(base, total, end-base)
	l.threads = map[threadKey]thread{}
	if l.before != nil && l.before.p != nil {
		l.p.Number(l.before.p)
		l.keys = slices.Clone(l.before.keys)
		for number, key := range l.keys {
			l.threads[key] = thread{number: number}
		}
	}
	l.before = nil
	// A thread that began when a recording was rotated may have several rows, and one without a row may have samples.
	list, err := db.Query(ctx, `SELECT session_id, pid, tid, coalesce(any_value(name), ''), coalesce(any_value(role), ''), bool_or(sampled)
		FROM (
		SELECT session_id, pid, tid, name, role, false AS sampled FROM thread
		UNION ALL SELECT DISTINCT session_id, pid, tid, NULL, NULL, true FROM sample) GROUP BY ALL ORDER BY ALL`)
	if err != nil {
		return err
	}
	defer list.Close()
	for list.Next() {
		var k threadKey
		t := thread{number: -1}
		if err := list.Scan(&k.session, &k.pid, &k.tid, &t.name, &t.role, &t.sampled); err != nil {
			return err
		}
		if known, numbered := l.threads[k]; numbered {
			t.number = known.number
		} else {
			t.number = len(l.keys)
			l.keys = append(l.keys, k)
		}
		l.threads[k] = t
	}
	return list.Err()
}

// pyramid waits until the pyramid can be asked.
func (s *edition) pyramid(ctx context.Context) (*pyramid.Pyramid, error) {
	select {
	case <-s.lanes.ready:
		return s.lanes.p, s.lanes.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// laid is /api/lanes: what the timeline's lanes are, top to bottom.
type laid struct {
	Base     string       `json:"base_ns"`  // since the Unix epoch; beyond what a double has
	Offset   float64      `json:"first_ms"` // of the base, from the recording's first row
	SpanNS   int64        `json:"span_ns"`
	Done     bool         `json:"done"`
	Rows     int64        `json:"rows"`
	Total    int64        `json:"total"`
	Problem  string       `json:"problem"`
	NotDrawn int64        `json:"not_drawn"`
	Lanes    []laneOnPage `json:"lanes"`
}

type laneOnPage struct {
	Number  int    `json:"number"` // -1 of a thread without calls
	Thread  int    `json:"thread"` // its number among the threads, -1 of a stream
	Session string `json:"session"`
	PID     int32  `json:"pid"`
	TID     int32  `json:"tid"`
	Kind    string `json:"kind"` // thread or stream
	Device  *int64 `json:"device"`
	Stream  *int64 `json:"stream"`
	Name    string `json:"name"`
	Role    string `json:"role"`
	Calls   int64  `json:"calls"`
	Depth   int    `json:"depth"`
	BusyNS  int64  `json:"busy_ns"`
	Sampled bool   `json:"sampled"`
}

func (s *edition) layLanes(r *http.Request) (any, error) {
	p, err := s.pyramid(r.Context())
	if err != nil {
		return nil, err
	}
	progress := p.Progress()
	d := laid{
		Base: strconv.FormatInt(p.Base(), 10), Offset: float64(p.Base()-s.lanes.firstNS) / 1e6, SpanNS: max(s.lanes.spanNS, progress.UntilNS),
		Done: progress.Done, Rows: progress.Rows, Total: progress.Total, NotDrawn: progress.OutOfRange, Lanes: []laneOnPage{},
	}
	s.lanes.mu.Lock()
	if s.lanes.failed != nil {
		d.Problem = printable.Text(s.lanes.failed.Error())
	}
	s.lanes.mu.Unlock()
	seen := map[threadKey]bool{}
	for i, l := range p.Lanes() {
		on := laneOnPage{Number: i, Thread: -1, Session: printable.Short(l.Session), PID: l.PID, TID: l.TID, Kind: "thread", Calls: l.Count,
			Depth: l.Depth(), BusyNS: l.Busy}
		if l.Device {
			on.Kind = "stream"
			on.Device, on.Stream = present(l.DeviceID), present(l.Stream)
		} else {
			key := threadKey{l.Session, l.PID, l.TID}
			seen[key] = true
			if t, known := s.lanes.threads[key]; known {
				on.thread(t)
			}
		}
		d.Lanes = append(d.Lanes, on)
	}
	for _, key := range s.lanes.keys {
		if t := s.lanes.threads[key]; !seen[key] && t.sampled {
			on := laneOnPage{Number: -1, Session: printable.Short(key.session), PID: key.pid, TID: key.tid, Kind: "thread"}
			on.thread(t)
			d.Lanes = append(d.Lanes, on)
		}
	}
	slices.SortFunc(d.Lanes, fromTop)
	return d, nil
}

func (on *laneOnPage) thread(t thread) {
	on.Thread, on.Name, on.Role, on.Sampled = t.number, printable.Short(t.name), printable.Short(t.role), t.sampled
}

// fromTop is the order of lanes: by process, its main thread first, then those with the most calls, then streams.
func fromTop(a, b laneOnPage) int {
	rank := func(l laneOnPage) [4]int64 {
		kind := int64(1)
		switch {
		case l.Kind == "stream":
			kind = 2
		case l.TID == l.PID:
			kind = 0
		}
		stream := int64(0)
		if l.Stream != nil {
			stream = *l.Stream
		}
		return [4]int64{int64(l.PID), kind, -l.Calls, int64(l.TID) + stream}
	}
	if c := strings.Compare(a.Session, b.Session); c != 0 {
		return c
	}
	x, y := rank(a), rank(b)
	return slices.Compare(x[:], y[:])
}

func present(n int64) *int64 {
	if n == dataset.Absent {
		return nil
	}
	return &n
}

const (
	mostRects = 20_000
	mostLanes = 256 // in a request: those on the screen
)

// window reads from, until, lanes and pixels.
func window(r *http.Request) (w pyramid.Window, err error) {
	q := r.URL.Query()
	from, errFrom := strconv.ParseInt(q.Get("from"), 10, 64)
	until, errUntil := strconv.ParseInt(q.Get("until"), 10, 64)
	if errFrom != nil || errUntil != nil || from >= until || from < -widest || until > widest {
		return w, badRequest("from=%q and until=%q are no range of nanoseconds", q.Get("from"), q.Get("until"))
	}
	w = pyramid.Window{From: max(from, 0), Until: max(until, 1), Depth: 1, Most: mostRects}
	for text := range strings.SplitSeq(q.Get("lanes"), ",") {
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || len(w.Lanes) >= mostLanes {
			return w, badRequest("lanes=%q: give the numbers of %d lanes at most", printable.Short(q.Get("lanes")), mostLanes)
		}
		w.Lanes = append(w.Lanes, n)
	}
	if text := q.Get("depth"); text != "" {
		if w.Depth, err = strconv.Atoi(text); err != nil || w.Depth < 0 {
			return w, badRequest("depth=%q is no number of rows", text)
		}
	}
	pixels := 1
	if text := q.Get("pixels"); text != "" {
		if pixels, err = strconv.Atoi(text); err != nil || pixels < 1 {
			return w, badRequest("pixels=%q is no width", text)
		}
	}
	// Bins of half a pixel to two.
	for each := float64(until-from) / float64(pixels); w.Level < pyramid.Levels-1 && float64(pyramid.Width(w.Level)) < each/2; {
		w.Level++
	}
	return w, nil
}

// timeline is /api/timeline: rectangles of a window, as columns.
func (s *edition) timeline(w http.ResponseWriter, r *http.Request) {
	if err := s.drawTimeline(w, r); err != nil {
		s.fail(w, r, err)
	}
}

func (s *edition) drawTimeline(w http.ResponseWriter, r *http.Request) error {
	p, err := s.pyramid(r.Context())
	if err != nil {
		return err
	}
	window, err := window(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.options.Timeout)
	defer cancel()
	picture, err := p.Query(ctx, s.base, window)
	if err != nil {
		return err
	}
	packed, err := pack(p, window, picture)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "no-store")
	return compressed(w, r, packed)
}

// share is a part as a byte; what is more than nothing stays more than nothing.
func share(part, whole int64) uint8 {
	if part <= 0 || whole <= 0 {
		return 0
	}
	return uint8(min(255, math.Ceil(255*float64(part)/float64(whole))))
}
