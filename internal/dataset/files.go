package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset/manifest"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/output/columnfile"
)

// files are the files of a dataset, good and bad.
type files struct {
	tables []tableFiles
	good   int // with rows in them, or made to have some
	bad    []badFile
	counts *manifest.Reader
}

// tableFiles are the readable files of one table.
type tableFiles struct {
	schema output.Table // without columns for a table that this version does not know
	paths  []string
	hive   bool // all of them lie below the same hive keys
	alike  bool // all of them have the same columns
}

type badFile struct {
	path string // in the dataset
	err  error
}

// Listing are the readable files of a dataset, for who reads them without Open.
type Listing struct {
	Files    map[string][]string // by table, with their full paths
	Warnings []string
}

// find looks for the files of a dataset that can be read, and where it really lies.
func find(dataset string) (root string, found *files, err error) {
	if root, err = resolve(dataset); err != nil {
		return "", nil, err
	}
	if found, err = scan(root); err != nil {
		return "", nil, fmt.Errorf("opening dataset %s: %w", dataset, err)
	}
	return root, found, found.usable(dataset)
}

// List lists what Open would read.
func List(dataset string) (*Listing, error) {
	_, found, err := find(dataset)
	if err != nil {
		return nil, err
	}
	l := &Listing{Files: map[string][]string{}, Warnings: found.warnings()}
	for _, t := range found.tables {
		l.Files[t.schema.Name] = t.paths
	}
	return l, nil
}

var tableName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// schemaOnly is the file without rows that output puts into each table.
const schemaOnly = "schema.parquet"

// scan finds the tables of a dataset: all that the schema knows, with files or
// without, and any other directory with Parquet files in it. Hidden files are
// unfinished ones, and none of a reader's business. In a fleet's store files are merged
// meanwhile: what a listing missed or has twice is not taken for the directory's contents.
func scan(root string) (*files, error) {
	counts, err := manifest.NewReader(os.DirFS(root))
	if err != nil {
		return nil, err
	}
	for range mostListings {
		f, err := list(root, counts)
		if err != nil {
			return nil, err
		}
		after, err := manifest.NewReader(os.DirFS(root))
		if err != nil || after.Same(counts) {
			return f, err
		}
		counts = after
	}
	return nil, errors.New("files are merged faster than they are listed: try again")
}

// mostListings of a directory in which files are merged.
const mostListings = 5

func list(root string, counts *manifest.Reader) (*files, error) {
	f := &files{counts: counts}
	known := map[string]bool{}
	for _, schema := range output.Schema() {
		known[schema.Name] = true
		if err := f.addTable(root, schema); err != nil {
			return nil, err
		}
	}
	for _, v := range output.DerivedViews() {
		known[v.Name] = true // of that name there can be no table
	}
	entries, err := filepath.Glob(filepath.Join(escapeGlob(root), "*"))
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name := filepath.Base(entry)
		if known[name] || !tableName.MatchString(name) {
			continue
		}
		if err := f.addTable(root, output.Table{Name: name}); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// escapeGlob is for filepath.Glob.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func (f *files) addTable(root string, schema output.Table) error {
	t := tableFiles{schema: schema, alike: true}
	var empty []string
	var columns uint64 // of the first file with rows
	err := filepath.WalkDir(filepath.Join(root, schema.Name), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && path == filepath.Join(root, schema.Name):
			return nil // no such table
		case err != nil:
			return err
		case strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case entry.IsDir() || !strings.HasSuffix(entry.Name(), ".parquet"):
			return nil
		}
		relative, _ := filepath.Rel(root, path)
		counts, err := f.counts.Counts(filepath.ToSlash(relative))
		if err != nil {
			f.addBad(badFile{manifest.Table + " of " + filepath.Dir(relative), err})
		}
		if !counts {
			return nil
		}
		if summary, err := columnfile.Check(path); err != nil {
			f.addBad(badFile{relative, err})
		} else if entry.Name() == schemaOnly {
			empty = append(empty, path)
		} else {
			if len(t.paths) == 0 {
				columns = summary.Columns
			}
			t.alike = t.alike && summary.Columns == columns
			t.paths = append(t.paths, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.good += len(t.paths)
	if len(t.paths) == 0 {
		t.paths, t.alike = empty, len(empty) < 2
	}
	t.hive = sameKeys(root, t.paths)
	if len(t.schema.Columns) > 0 || len(t.paths) > 0 {
		f.tables = append(f.tables, t)
	}
	return nil
}

func (f *files) addBad(b badFile) {
	if !slices.ContainsFunc(f.bad, func(o badFile) bool { return o.path == b.path }) {
		f.bad = append(f.bad, b)
	}
}

// sameKeys says whether all paths have the same hive keys, and any at all:
// DuckDB refuses files of which only some have them.
func sameKeys(root string, paths []string) bool {
	var first []string
	for i, path := range paths {
		keys := hiveKeys(root, path)
		if i == 0 {
			first = keys
		}
		if !slices.Equal(first, keys) {
			return false
		}
	}
	return len(first) > 0
}

func hiveKeys(root, path string) (keys []string) {
	relative, _ := filepath.Rel(root, filepath.Dir(path))
	for _, part := range strings.Split(relative, string(filepath.Separator)) {
		if key, _, ok := strings.Cut(part, "="); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// usable says what is wrong with a dataset of which nothing can be read.
func (f *files) usable(dataset string) error {
	files := f.good + len(f.bad)
	for _, t := range f.tables {
		files += len(t.paths)
	}
	switch {
	case files == 0:
		return fmt.Errorf("%s is %w: no table in it (session, span, …)", dataset, ErrNotDataset)
	case f.good == 0 && len(f.bad) > 0:
		return fmt.Errorf("%w %s: no file with rows is readable; the first, %s, %w", ErrCorrupt, dataset, f.bad[0].path, f.bad[0].err)
	}
	return nil
}

func (f *files) warnings() (all []string) {
	for _, b := range f.bad {
		all = append(all, fmt.Sprintf("left out %s: %v", b.path, b.err))
	}
	return all
}
