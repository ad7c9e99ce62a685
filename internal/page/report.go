package page

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
	"github.com/ebpfprof/ebpfprof/internal/answer/report"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/peaks"
)

// reports computes each report once, however many tabs ask for it.
type reports struct {
	edition *edition
	mu      sync.Mutex
	known   map[string]*computed // by their part, as the query names it
	doing   string
}

// computed is a report, or what went wrong; done is closed when it is one of them.
type computed struct {
	done     chan struct{}
	text     []byte
	findings []findings.Finding
	err      error
}

// mostReports are remembered.
const mostReports = 32

func newReports(s *edition) *reports { return &reports{edition: s, known: map[string]*computed{}} }

func (r *reports) progress() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.doing
}

func (r *reports) say(what string) {
	r.mu.Lock()
	r.doing = what
	r.mu.Unlock()
}

// of returns the report of a part; it begins to compute one that nobody asked for so far.
func (r *reports) of(o report.Options) *computed {
	key := partKey(o)
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.known[key]; c != nil {
		return c
	}
	if len(r.known) >= mostReports {
		clear(r.known)
	}
	c := &computed{done: make(chan struct{})}
	r.known[key] = c
	r.edition.work.Go(func() {
		c.text, c.findings, c.err = r.compute(o)
		r.say("")
		if c.err != nil { // another try may succeed
			r.mu.Lock()
			delete(r.known, key)
			r.mu.Unlock()
		}
		close(c.done)
	})
	return c
}

// compute writes the bytes that `ebpfprof report --json` writes; its findings are those in it.
func (r *reports) compute(o report.Options) ([]byte, []findings.Finding, error) {
	ctx, cancel := context.WithTimeout(r.edition.life, 10*r.edition.options.Timeout)
	defer cancel()
	if r.edition.stale() {
		return nil, nil, errChanged
	}
	var text bytes.Buffer
	var found []findings.Finding
	err := r.edition.pool.use(ctx, func(db *dataset.DB) error {
		var processor sql.NullString
		if err := db.Row(ctx, "SELECT any_value(cpu_model) FROM session", nil, &processor); err != nil {
			return err
		}
		if m, ok := peaks.Saved(processor.String); ok {
			o.Machine = &m
		}
		o.Progress = r.say
		built, err := report.Build(ctx, db, o)
		if err != nil {
			return err
		}
		found = built.Findings
		return built.Write(&text, "json", report.Style{})
	})
	return text.Bytes(), found, err
}

// report is /api/report: `ebpfprof report --json` of a part, byte for byte.
func (s *edition) report(w http.ResponseWriter, r *http.Request) {
	o, err := part(r.URL.Query())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	c := s.reports.of(o)
	select {
	case <-c.done:
	case <-r.Context().Done():
		return
	}
	if errors.Is(c.err, dataset.ErrNoRank) {
		c.err = problem{http.StatusNotFound, c.err}
	}
	if c.err != nil {
		s.fail(w, r, c.err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(c.text)
}

// part reads what --rank, --step, --from and --to choose on the command line.
func part(q url.Values) (o report.Options, err error) {
	for name, target := range map[string]**int{"rank": &o.Rank, "step": &o.Step} {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return o, badRequest("%s=%q is no number from 0 on", name, text)
			}
			*target = &n
		}
	}
	for name, target := range map[string]**float64{"from": &o.FromMS, "to": &o.ToMS} {
		if text := q.Get(name); text != "" {
			ms, err := strconv.ParseFloat(text, 64)
			if err != nil || !(ms >= 0) {
				return o, badRequest("%s=%q is no number of milliseconds", name, text)
			}
			*target = &ms
		}
	}
	switch {
	case o.Step != nil && (o.FromMS != nil || o.ToMS != nil):
		return o, badRequest("step selects an interval itself: omit from and to")
	case o.FromMS != nil && o.ToMS != nil && *o.FromMS >= *o.ToMS:
		return o, badRequest("from is not before to")
	}
	return o, nil
}

// partKey is the same for the same part.
func partKey(o report.Options) string {
	q := url.Values{}
	for name, n := range map[string]*int{"rank": o.Rank, "step": o.Step} {
		if n != nil {
			q.Set(name, strconv.Itoa(*n))
		}
	}
	for name, ms := range map[string]*float64{"from": o.FromMS, "to": o.ToMS} {
		if ms != nil {
			q.Set(name, strconv.FormatFloat(*ms, 'g', -1, 64))
		}
	}
	return q.Encode()
}
