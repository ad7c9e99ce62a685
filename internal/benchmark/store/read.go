package store

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// Contents are all rows of a store, oldest first.
type Contents struct {
	Sessions []Session
	Runs     []Run
	Numbers  map[string][]Number // by run
	Warnings []string            // which files cannot be read
}

// Read reads a store. A file that cannot be read is left out and named: it may be of a run that is being written.
func (s *Store) Read() (*Contents, error) {
	c := &Contents{Numbers: map[string][]Number{}}
	sessions, err := rows[Session](s, c, SessionTable)
	if err != nil {
		return nil, err
	}
	last := map[string]int{}
	for _, row := range sessions {
		if i, ok := last[row.ID]; ok {
			c.Sessions[i] = row
			continue
		}
		last[row.ID] = len(c.Sessions)
		c.Sessions = append(c.Sessions, row)
	}
	if c.Runs, err = rows[Run](s, c, RunTable); err != nil {
		return nil, err
	}
	numbers, err := rows[Number](s, c, NumberTable)
	if err != nil {
		return nil, err
	}
	for _, n := range numbers {
		c.Numbers[n.Run] = append(c.Numbers[n.Run], n)
	}
	slices.SortStableFunc(c.Sessions, func(a, b Session) int { return cmp.Compare(a.Begin, b.Begin) })
	slices.SortStableFunc(c.Runs, func(a, b Run) int { return cmp.Compare(a.Begin, b.Begin) })
	return c, nil
}

func rows[R any](s *Store, c *Contents, table string) (all []R, err error) {
	files, err := s.files(table)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		some, err := parquet.ReadFile[R](file)
		if err != nil {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s is left out: %v", s.Relative(file), err))
			continue
		}
		all = append(all, some...)
	}
	return all, nil
}

// Session is the one of an id, or of a beginning that only one has; "last" is the newest.
func (c *Contents) Session(id string) (Session, error) {
	if len(c.Sessions) == 0 {
		return Session{}, errors.New("the store has no session yet")
	}
	if id == "last" {
		return c.Sessions[len(c.Sessions)-1], nil
	}
	var found []Session
	for _, s := range c.Sessions {
		if s.ID == id {
			return s, nil
		}
		if strings.HasPrefix(s.ID, id) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Session{}, fmt.Errorf("the store has no session %q: ebpfprof bench list shows them", id)
	}
	return Session{}, fmt.Errorf("%d sessions begin with %q: give more of the name", len(found), id)
}

// RunsOf are the runs of a session.
func (c *Contents) RunsOf(session string) (all []Run) {
	for _, r := range c.Runs {
		if r.Session == session {
			all = append(all, r)
		}
	}
	return all
}

// Delete removes a session with all that its runs left behind.
func (s *Store) Delete(session string) error {
	if session == "" || strings.ContainsAny(session, `/\`) || strings.HasPrefix(session, ".") {
		return fmt.Errorf("%q is no session's name", session)
	}
	for _, table := range []string{NumberTable, RunTable, SessionTable} {
		files, err := s.files(table)
		if err != nil {
			return err
		}
		for _, file := range files {
			if strings.HasPrefix(filepath.Base(file), session+".") {
				if err := os.Remove(file); err != nil {
					return fmt.Errorf("deleting the session: %w", err)
				}
			}
		}
	}
	if err := os.RemoveAll(filepath.Join(s.root, runsDirectory, session)); err != nil {
		return fmt.Errorf("deleting what the session's runs left behind: %w", err)
	}
	return nil
}
