package query

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dataset/derived"
)

// Saved is a query that a user keeps with a dataset: a row of table saved_query.
type Saved struct {
	Name, SQL string
	CreatedNS int64
}

// ErrSaved is wrapped where a name is none, or there is no such query.
var ErrSaved = errors.New("saved query")

const savedTable = "saved_query"

var savedName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

var savedColumns = []derived.Column[Saved]{
	{Name: "name", Texts: func(s *Saved) (string, bool) { return s.Name, true }},
	{Name: "sql", Texts: func(s *Saved) (string, bool) { return s.SQL, true }},
	{Name: "created_ns", Ints: func(s *Saved) (int64, bool) { return s.CreatedNS, true }},
}

// Saved lists the queries of the dataset by name.
func (db *DB) Saved(ctx context.Context) (all []Saved, err error) {
	if len(db.Files(savedTable)) == 0 {
		return nil, nil
	}
	rows, err := db.Query(ctx, "SELECT name, sql, created_ns FROM saved_query ORDER BY name")
	if err != nil {
		return nil, fmt.Errorf("reading saved queries: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var s Saved
		if err := rows.Scan(&s.Name, &s.SQL, &s.CreatedNS); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}

// FindSaved is the query of that name.
func (db *DB) FindSaved(ctx context.Context, name string) (Saved, error) {
	all, err := db.Saved(ctx)
	if err != nil {
		return Saved{}, err
	}
	var names []string
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return Saved{}, fmt.Errorf("%w %q: the dataset has none; query DATASET 'SELECT …' --save NAME keeps one", ErrSaved, name)
	}
	return Saved{}, fmt.Errorf("%w %q: the dataset has %s", ErrSaved, name, strings.Join(names, ", "))
}

// Save keeps a query in the dataset, instead of the one that has its name. It must be
// one that can be run.
func (db *DB) Save(ctx context.Context, name, sql string) error {
	if !savedName.MatchString(name) {
		return fmt.Errorf("%w %q: a name has letters, digits, '_', '-' and '.'", ErrSaved, name)
	}
	if err := db.checkSelect(ctx, sql); err != nil {
		return err
	}
	all, err := db.Saved(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(s Saved) bool { return s.Name == name })
	return derived.Write(db.Root(), savedTable, savedColumns, append(all, Saved{name, sql, time.Now().UnixNano()}))
}
