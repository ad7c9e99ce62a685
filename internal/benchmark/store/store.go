// Package store keeps the results of benchmarks: Parquet files in a directory, a table each for sessions, runs and
// numbers. Files are only added; one is never changed. `ebpfprof query STORE` reads them like those of a recording.
package store

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/ebpfprof/ebpfprof/internal/directory"
)

// The tables. Each is a directory of the store.
const (
	SessionTable = "bench_session"
	RunTable     = "bench_run"
	NumberTable  = "bench_number"
)

// runsDirectory has what runs leave behind, by session: recordings and what the jobs printed. Its name is none of a
// table's.
const runsDirectory = "runs.d"

// Session is one call of ebpfprof bench.
type Session struct {
	ID      string `parquet:"session_id,dict,zstd"`
	Begin   int64  `parquet:"begin_ns"`
	End     *int64 `parquet:"end_ns,optional"`
	Tool    string `parquet:"tool_version,dict,zstd"`
	Command string `parquet:"command_line,zstd"`
	Host    string `parquet:"host,dict,zstd"`
	Extras  string `parquet:"extras,zstd"` // JSON: what --session-extras gave
}

// Run is one run of one benchmark: a test case in ReFrame's words.
type Run struct {
	Session   string `parquet:"session_id,dict,zstd"`
	ID        string `parquet:"run_id,zstd"`
	Name      string `parquet:"name,dict,zstd"`
	Base      string `parquet:"basename,dict,zstd"` // without parameters
	System    string `parquet:"system,dict,zstd"`
	Partition string `parquet:"partition,dict,zstd"`
	Environ   string `parquet:"environ,dict,zstd"`
	Repeat    int32  `parquet:"repeat"`
	Attempt   int32  `parquet:"attempt"`
	Begin     int64  `parquet:"begin_ns"`
	End       int64  `parquet:"end_ns"`
	Command   string `parquet:"command,zstd"`
	Result    string `parquet:"result,dict,zstd"` // pass, fail, xfail or xpass
	Stage     string `parquet:"fail_stage,dict,zstd"`
	Reason    string `parquet:"reason,zstd"`
	ExitCode  *int32 `parquet:"exit_code,optional"`
	Recording string `parquet:"recording,zstd"`       // in the store; "" where it was not kept
	Stages    string `parquet:"stages,zstd"`          // JSON: how long each took
	Inventory string `parquet:"inventory,zstd"`       // JSON
	Parameter string `parquet:"parameters,zstd"`      // JSON
	Periods   string `parquet:"step_periods_ms,zstd"` // JSON: means of up to 400 stretches of steps, for a picture
}

// Number is a number of a run, or a variable of its suite, with its reference.
type Number struct {
	Session string   `parquet:"session_id,dict,zstd"`
	Run     string   `parquet:"run_id,dict,zstd"`
	Name    string   `parquet:"pvar,dict,zstd"`
	Value   *float64 `parquet:"pval,optional"`
	Lo      *float64 `parquet:"lo,optional"`
	Hi      *float64 `parquet:"hi,optional"`
	Of      int64    `parquet:"samples"`
	From    string   `parquet:"samples_of,dict,zstd"`
	Unit    string   `parquet:"punit,dict,zstd"`
	Why     string   `parquet:"why,dict,zstd"`
	Ref     *float64 `parquet:"pref,optional"`
	Lower   *float64 `parquet:"plower,optional"` // thresholds, as fractions of the reference
	Upper   *float64 `parquet:"pupper,optional"`
	Result  string   `parquet:"presult,dict,zstd"` // pass, fail, xfail, xpass; "" without a reference
}

// ErrNoStore is returned for a directory that holds no results.
var ErrNoStore = errors.New("no store of benchmarks: ebpfprof bench makes one")

// Store is an opened store.
type Store struct{ root string }

// Create opens a store for writing, which is made if it does not exist. It belongs to the user behind sudo.
func Create(root string) (*Store, error) {
	s := &Store{root}
	for _, table := range []string{"", SessionTable, RunTable, NumberTable, runsDirectory} {
		if err := s.make(filepath.Join(root, table)); err != nil {
			return nil, fmt.Errorf("making the store %s: %w", root, err)
		}
	}
	return s, nil
}

func (s *Store) make(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return give(path)
}

// give gives a file or directory to the user behind sudo, so that it can be read and deleted without root.
func give(path string) error {
	access := directory.Invoker()
	if access.UID < 0 {
		return nil
	}
	return os.Lchown(path, access.UID, access.GID)
}

// Open opens a store for reading.
func Open(root string) (*Store, error) {
	info, err := os.Stat(filepath.Join(root, RunTable))
	if err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is %w", root, ErrNoStore)
	}
	return &Store{root}, nil
}

// Root is the store's directory.
func (s *Store) Root() string { return s.root }

// NewID is a session's: its time, and what tells two of one second apart.
func NewID(at time.Time) string {
	var more [3]byte
	_, _ = rand.Read(more[:])
	return at.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(more[:])
}

// Place is the directory for what a run leaves behind; it is made. As stored, names are below the store's root.
func (s *Store) Place(session, run string) (string, error) {
	path := filepath.Join(s.root, runsDirectory, session, run)
	for _, dir := range []string{filepath.Dir(path), path} {
		if err := s.make(dir); err != nil {
			return "", fmt.Errorf("making a place for the run: %w", err)
		}
	}
	return path, nil
}

// Relative is a path below the store's root, as rows have it.
func (s *Store) Relative(path string) string {
	if r, err := filepath.Rel(s.root, path); err == nil {
		return r
	}
	return path
}

// AddSession writes a session's row; the last one that was written counts.
func (s *Store) AddSession(row Session) error { return add(s, SessionTable, row.ID, []Session{row}) }

// AddRun writes a run and its numbers.
func (s *Store) AddRun(run Run, numbers []Number) error {
	return errors.Join(add(s, NumberTable, run.Session, numbers), add(s, RunTable, run.Session, []Run{run}))
}

// add writes rows as a new file, which is there whole or not at all.
func add[R any](s *Store, table, session string, rows []R) error {
	if len(rows) == 0 {
		return nil
	}
	var content bytes.Buffer
	if err := parquet.Write(&content, rows); err != nil {
		return fmt.Errorf("writing table %s: %w", table, err)
	}
	dir := filepath.Join(s.root, table)
	part, err := os.CreateTemp(dir, ".part-*")
	if err != nil {
		return fmt.Errorf("writing to the store: %w", err)
	}
	_, err = part.Write(content.Bytes())
	err = errors.Join(err, part.Sync(), part.Close(), give(part.Name()))
	if err == nil {
		// Times order a session's files, and names in one directory must differ.
		err = os.Rename(part.Name(), filepath.Join(dir, fmt.Sprintf("%s.%019d.parquet", session, time.Now().UnixNano())))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing to the store: %w", err), os.Remove(part.Name()))
	}
	return nil
}

// files are those of a table, oldest first within a session.
func (s *Store) files(table string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.root, table))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the store: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".parquet") && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, filepath.Join(s.root, table, e.Name()))
		}
	}
	slices.Sort(names)
	return names, nil
}
