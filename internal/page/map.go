package page

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"sync"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// mapped remembers the job that was asked for last.
type mapped struct {
	mu   sync.Mutex
	of   *ranks
	jobs []string
}

// jobMap is /api/map: what there is to draw.
type jobMap struct {
	Jobs    []string  `json:"jobs"` // of a store, newest first
	Job     string    `json:"job"`
	Base    string    `json:"base_ns"`
	SpanNS  int64     `json:"span_ns"`
	Numbers [2]int64  `json:"numbers"`
	Ranks   int       `json:"ranks"`
	Steps   int64     `json:"steps"`
	Left    int64     `json:"left_out"` // earlier steps
	Longest float64   `json:"longest_ns"`
	Loading bool      `json:"loading"` // some worker's loader is recorded
	Slowest []mapRank `json:"slowest"`
}

type mapRank struct {
	Row       int      `json:"row"` // when sorted by slowness
	Title     string   `json:"title"`
	Host      string   `json:"host"`
	PID       int32    `json:"pid"`
	Steps     int      `json:"steps"`
	OwnNS     float64  `json:"own_ns"`
	Waiting   float64  `json:"waiting"`
	Loading   *float64 `json:"loading"`
	FromFirst *int64   `json:"first_ns"` // begin of its first step
}

// mostSlowest are listed beside the map.
const mostSlowest = 30

func (w *worker) listed(row int) mapRank {
	r := mapRank{Row: row, Title: w.title(), Host: printable.Short(w.host), PID: w.pid, Steps: len(w.steps), OwnNS: w.ownNS, Waiting: w.waiting}
	if w.loading >= 0 {
		r.Loading = &w.loading
	}
	if len(w.steps) > 0 {
		r.FromFirst = &w.steps[0].begin
	}
	return r
}

func (s *edition) jobMap(r *http.Request) (any, error) {
	m, all, err := s.ranksOf(r.Context(), r.URL.Query().Get("job"))
	if err != nil {
		return nil, err
	}
	d := jobMap{Jobs: []string{}, Job: printable.Short(m.job), Base: strconv.FormatInt(m.baseNS, 10), SpanNS: m.spanNS, Numbers: m.numbers,
		Ranks: len(m.workers), Left: m.left, Longest: float64(m.longest), Slowest: []mapRank{}}
	for _, job := range all {
		d.Jobs = append(d.Jobs, printable.Short(job))
	}
	for i := range m.workers {
		d.Steps += int64(len(m.workers[i].steps))
		d.Loading = d.Loading || m.workers[i].loading >= 0
	}
	for row, i := range m.orders["slow"] {
		if row == mostSlowest {
			break
		}
		d.Slowest = append(d.Slowest, m.workers[i].listed(row))
	}
	return d, nil
}

// ranksOf are the workers of a job; "" is the newest.
func (s *edition) ranksOf(ctx context.Context, job string) (*ranks, []string, error) {
	c := &s.maps
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of != nil && (job == "" || job == printable.Short(c.of.job)) {
		return c.of, c.jobs, nil
	}
	err := s.query(ctx, func(ctx context.Context, db *dataset.DB) (err error) {
		c.jobs, err = jobs(ctx, db)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	found := ""
	for i, known := range c.jobs {
		if job == printable.Short(known) || job == "" && i == 0 {
			found = known
			break
		}
	}
	if job != "" && found == "" {
		return nil, nil, notFound("no job %q has steps here", printable.Short(job))
	}
	m, err := s.readRanks(ctx, found)
	if err != nil {
		return nil, nil, err
	}
	c.of = m
	return m, c.jobs, nil
}

// view is a part of the map: workers in an order, a range of times or of steps' numbers.
type view struct {
	order       []int
	metric      string
	byNumber    bool
	from, until int64
	first, last int // workers in the order
	rows        int
	columns     int
}

const (
	mostMapRows    = 2200
	mostMapColumns = 4200
	noCell         = 255
)

func (m *ranks) view(q url.Values) (v view, err error) {
	number := func(name string, least, most int64) int64 {
		n, bad := strconv.ParseInt(q.Get(name), 10, 64)
		if (bad != nil || n < least || n > most) && err == nil {
			err = badRequest("%s=%q is no number from %d to %d", name, printable.Short(q.Get(name)), least, most)
		}
		return n
	}
	v = view{metric: q.Get("metric"), byNumber: q.Get("axis") == "step"}
	v.from, v.until = number("from", -widest, widest), number("until", -widest, widest)
	v.first, v.last = int(number("first", 0, math.MaxInt32)), int(number("last", 0, math.MaxInt32))
	v.rows, v.columns = int(number("rows", 1, mostMapRows)), int(number("columns", 1, mostMapColumns))
	if err != nil {
		return v, err
	}
	switch v.metric {
	case "off", "wait", "load", "period":
	default:
		return v, badRequest("metric=%q: off, wait, load or period", printable.Short(v.metric))
	}
	if v.order = m.orders[q.Get("sort")]; v.order == nil && len(m.workers) > 0 {
		return v, badRequest("sort=%q: rank, host or slow", printable.Short(q.Get("sort")))
	}
	v.last = min(v.last, len(v.order))
	if v.from >= v.until || v.first >= v.last && len(v.order) > 0 {
		return v, badRequest("from is not before until, or first not before last")
	}
	v.rows = max(1, min(v.rows, v.last-v.first))
	return v, nil
}

// cell is what a step is drawn as.
func (m *ranks) cell(s mapStep, metric string) uint8 {
	switch metric {
	case "wait":
		return uint8(math.Round(254 * float64(s.wait)))
	case "load":
		if s.load < 0 {
			return noCell
		}
		return uint8(math.Round(254 * float64(s.load)))
	case "period":
		return uint8(math.Round(254 * float64(s.period/m.longest)))
	}
	return s.off
}

// extent is where on the axis a step is.
func (v view) extent(s mapStep) (from, until int64) {
	if v.byNumber {
		return int64(s.number), int64(s.number) + 1
	}
	return s.begin, s.begin + int64(s.period)
}

// steps calls f for those of a worker that lie in the view.
func (v view) steps(w *worker, f func(s mapStep, from, until int64)) {
	first := 0
	if !v.byNumber { // by number they need not be in order: a worker may have been recorded twice
		first = sort.Search(len(w.steps), func(i int) bool { _, until := v.extent(w.steps[i]); return until > v.from })
	}
	for _, s := range w.steps[first:] {
		from, until := v.extent(s)
		if from >= v.until {
			if v.byNumber {
				continue
			}
			return
		}
		if until > v.from {
			f(s, from, until)
		}
	}
}

// says reports whether a value says more than another of the same cell: one slow rank among thousands is to be seen, and
// who is slow waits least.
func says(metric string, value, than uint8) bool {
	if metric == "wait" {
		return value < than
	}
	return value > than
}

// draw fills cells: of the steps that share one, with the value that says most.
func (m *ranks) draw(v view) []byte {
	cells := make([]byte, v.rows*v.columns)
	for i := range cells {
		cells[i] = noCell
	}
	scale := float64(v.columns) / float64(v.until-v.from)
	for k := v.first; k < v.last; k++ {
		row := (k - v.first) * v.rows / (v.last - v.first)
		line := cells[row*v.columns : (row+1)*v.columns]
		v.steps(&m.workers[v.order[k]], func(s mapStep, from, until int64) {
			value := m.cell(s, v.metric)
			if value == noCell {
				return
			}
			left := max(0, int(float64(from-v.from)*scale))
			right := min(v.columns, max(left+1, int(math.Ceil(float64(until-v.from)*scale))))
			for x := left; x < right; x++ {
				if line[x] == noCell || says(v.metric, value, line[x]) {
					line[x] = value
				}
			}
		})
	}
	return cells
}

// mapCells is /api/map/cells: the length of a header, the header, and a byte a cell, row by row.
func (s *edition) mapCells(w http.ResponseWriter, r *http.Request) {
	m, _, err := s.ranksOf(r.Context(), r.URL.Query().Get("job"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	v, err := m.view(r.URL.Query())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	head := struct {
		Rows    int      `json:"rows"`
		Columns int      `json:"columns"`
		Titles  []string `json:"titles"` // of each row's first worker
	}{v.rows, v.columns, []string{}}
	var cells []byte
	if len(v.order) > 0 {
		cells = m.draw(v)
		for row := range v.rows {
			head.Titles = append(head.Titles, m.workers[v.order[v.first+row*(v.last-v.first)/v.rows]].title())
		}
	}
	text, err := json.Marshal(head)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "no-store")
	_ = compressed(w, r, append(append(out, text...), cells...))
}

// mapStepFound is /api/map/step: the step that a cell of the workers and times of a view is drawn as.
type mapStepFound struct {
	mapRank
	Number  uint32  `json:"number"`
	BeginNS int64   `json:"begin_ns"` // from the base
	Period  float64 `json:"period_ns"`
	Wait    float64 `json:"wait_ns"`
	Load    float64 `json:"load_ns"` // -1: its loader is not recorded
	Off     float64 `json:"off"`     // times the median of all workers' own time then, between a half and 2
}

func (s *edition) mapStep(r *http.Request) (any, error) {
	m, _, err := s.ranksOf(r.Context(), r.URL.Query().Get("job"))
	if err != nil {
		return nil, err
	}
	v, err := m.view(r.URL.Query())
	if err != nil {
		return nil, err
	}
	best := uint8(noCell)
	var found *mapStepFound
	for k := v.first; k < v.last; k++ {
		of := &m.workers[v.order[k]]
		v.steps(of, func(st mapStep, _, _ int64) {
			value := m.cell(st, v.metric)
			if value == noCell || best != noCell && !says(v.metric, value, best) {
				return
			}
			best = value
			found = &mapStepFound{mapRank: of.listed(k), Number: st.number, BeginNS: st.begin, Period: float64(st.period),
				Wait: float64(st.wait * st.period), Load: float64(max(st.load*st.period, -1)), Off: math.Exp2(float64(st.off)/127 - 1)}
		})
	}
	return found, nil
}
