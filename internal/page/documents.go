package page

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/query"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/output"
)

const (
	mostSQL    = 64 << 10
	mostRows   = 10_000
	mostAnswer = 16 << 20
)

// ask is /api/query: `ebpfprof query DATASET SQL --format json`, byte for byte, as far as its first rows go. A header says
// whether there are more; that the names are in the answer's order is JSON's text, which the page reads.
func (s *edition) ask(w http.ResponseWriter, r *http.Request) {
	sql, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostSQL))
	if err != nil {
		s.fail(w, r, badRequest("the query is longer than %d kB", mostSQL>>10))
		return
	}
	var text bytes.Buffer
	more := false
	err = s.query(r.Context(), func(ctx context.Context, db *dataset.DB) (err error) {
		more, err = (&query.DB{DB: db}).WriteFirst(ctx, &text, string(sql), query.Most{Rows: mostRows, Bytes: mostAnswer})
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return problem{http.StatusBadRequest, err}
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Has-More", strconv.FormatBool(more))
	_ = compressed(w, r, text.Bytes())
}

// example is a row of /api/examples: a query that comes with the tool, or one that was kept with the dataset.
type example struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	SQL   string `json:"sql"`
	Saved bool   `json:"saved"`
}

func (s *edition) examples(r *http.Request) (any, error) {
	all := []example{}
	err := s.query(r.Context(), func(ctx context.Context, db *dataset.DB) error {
		saved, err := (&query.DB{DB: db}).Saved(ctx)
		for _, q := range saved {
			all = append(all, example{printable.Short(q.Name), "", printable.Lines(q.SQL), true})
		}
		return err
	})
	for _, e := range query.Examples() {
		all = append(all, example{Name: e.Name, Title: e.Title, SQL: e.SQL})
	}
	return all, err
}

// schema is /api/schema: `ebpfprof schema --format json`, byte for byte.
func (s *edition) schema(w http.ResponseWriter, r *http.Request) {
	var text bytes.Buffer
	if err := output.WriteSchema(&text, output.Schema()); err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = compressed(w, r, text.Bytes())
}
