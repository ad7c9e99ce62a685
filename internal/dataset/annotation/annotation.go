// Package annotation keeps what people write about a recording beside it: table
// annotation of the dataset, a row for each note, with the time or the place that it
// is about.
package annotation

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/derived"
)

// Note is a row of table annotation. Of absent numbers the pointer is nil.
type Note struct {
	ID         int64   `json:"annotation_id"`
	CreatedNS  int64   `json:"created_ns"`
	Author     string  `json:"author"`
	Text       string  `json:"text"`
	TSNS       *int64  `json:"ts_ns"`
	DurationNS *int64  `json:"duration_ns"`
	Rank       *int64  `json:"rank"`
	Step       *int64  `json:"step"`
	Place      *string `json:"place"`
}

// ErrNone is returned for a note that there is not.
var ErrNone = errors.New("no such note")

const table = "annotation"

func number(get func(*Note) *int64) func(*Note) (int64, bool) {
	return func(n *Note) (int64, bool) {
		if v := get(n); v != nil {
			return *v, true
		}
		return 0, false
	}
}

var columns = []derived.Column[Note]{
	{Name: "annotation_id", Ints: func(n *Note) (int64, bool) { return n.ID, true }},
	{Name: "created_ns", Ints: func(n *Note) (int64, bool) { return n.CreatedNS, true }},
	{Name: "author", Texts: func(n *Note) (string, bool) { return n.Author, n.Author != "" }},
	{Name: "text", Texts: func(n *Note) (string, bool) { return n.Text, true }},
	{Name: "ts_ns", Ints: number(func(n *Note) *int64 { return n.TSNS })},
	{Name: "duration_ns", Ints: number(func(n *Note) *int64 { return n.DurationNS })},
	{Name: "rank", Ints: number(func(n *Note) *int64 { return n.Rank })},
	{Name: "step", Ints: number(func(n *Note) *int64 { return n.Step })},
	{Name: "place", Texts: func(n *Note) (string, bool) {
		if n.Place == nil {
			return "", false
		}
		return *n.Place, true
	}},
}

// List is all notes of a dataset, the earliest first.
func List(ctx context.Context, db *dataset.DB) ([]Note, error) {
	all := []Note{}
	if len(db.Files(table)) == 0 {
		return all, nil
	}
	rows, err := db.Query(ctx, "SELECT annotation_id, created_ns, author, text, ts_ns, duration_ns, rank, step, place FROM annotation ORDER "+
		"BY annotation_id")
	if err != nil {
		return nil, fmt.Errorf("reading the notes: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var n Note
		var author sql.NullString
		if err := rows.Scan(&n.ID, &n.CreatedNS, &author, &n.Text, &n.TSNS, &n.DurationNS, &n.Rank, &n.Step, &n.Place); err != nil {
			return nil, err
		}
		n.Author = author.String
		all = append(all, n)
	}
	return all, rows.Err()
}

// Add writes a note with the others and returns it with its number.
func Add(ctx context.Context, db *dataset.DB, n Note) (Note, error) {
	all, err := List(ctx, db)
	if err != nil {
		return n, err
	}
	for _, other := range all {
		n.ID = max(n.ID, other.ID)
	}
	n.ID++
	n.CreatedNS = time.Now().UnixNano()
	return n, derived.Write(db.Root(), table, columns, append(all, n))
}

// Remove takes a note away.
func Remove(ctx context.Context, db *dataset.DB, id int64) error {
	all, err := List(ctx, db)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(n Note) bool { return n.ID == id })
	if i < 0 {
		return fmt.Errorf("%w: %d; ebpfprof annotate DATASET lists them", ErrNone, id)
	}
	return derived.Write(db.Root(), table, columns, slices.Delete(all, i, i+1))
}
