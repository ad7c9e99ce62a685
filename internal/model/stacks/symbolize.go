package stacks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/query"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Named is what Symbolize did.
type Named struct {
	Nameless  int // native frames without a symbol, before
	Named     int // of these have one now
	Rewritten int // files
	Missing   []MissingFile
}

// MissingFile is a file whose symbols were wanted and not found.
type MissingFile struct {
	Module, BuildID string
	Frames          int
	Found           bool // the file is there, and has no symbol at these places either
}

// Symbolize names the native frames of the dataset that have a build id and no
// symbol, with the symbols of the files in dir, and rewrites those files of
// table stack that change. Nothing else is touched: a stack's id does not
// depend on names.
func Symbolize(ctx context.Context, db *query.DB, dir *symbolize.DebugDir) (*Named, error) {
	n := &namer{dir: dir, files: map[string]*symbolize.File{}, wanted: map[string]*MissingFile{}}
	defer n.close()
	for _, path := range db.Files("stack") {
		rows, err := readStacks(ctx, db, path)
		if err != nil {
			return nil, err
		}
		changed, err := n.nameAll(rows)
		if err != nil {
			return nil, err
		}
		if !changed {
			continue
		}
		if err := output.RewriteStacks(path, rows); err != nil {
			return nil, err
		}
		n.Rewritten++
	}
	for _, m := range n.wanted {
		n.Missing = append(n.Missing, *m)
	}
	slices.SortFunc(n.Missing, func(a, b MissingFile) int {
		return cmp.Or(cmp.Compare(b.Frames, a.Frames), cmp.Compare(a.Module, b.Module), cmp.Compare(a.BuildID, b.BuildID))
	})
	return &n.Named, nil
}

// readStacks reads one file of table stack.
func readStacks(ctx context.Context, db *query.DB, path string) ([]event.Stack, error) {
	r, err := db.Run(ctx, "SELECT stack_id, folded, status, inferred_frames, "+framesText("frames")+" FROM "+dataset.FileSource(path))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Base(path), err)
	}
	rows := make([]event.Stack, 0, len(r.Rows))
	for _, row := range r.Rows {
		rows = append(rows, event.Stack{ID: integer(row[0]), Folded: text(row[1]), Status: text(row[2]), Inferred: int32(integer(row[3])),
			Frames: parseFrames(text(row[4]))})
	}
	return rows, nil
}

// namer keeps the files that were opened and those that were not found.
type namer struct {
	Named
	dir    *symbolize.DebugDir
	files  map[string]*symbolize.File // by build id, nil: none
	open   []*elf.File
	wanted map[string]*MissingFile // by build id
}

func (n *namer) nameAll(rows []event.Stack) (changed bool, err error) {
	for i := range rows {
		named := false
		for j := range rows[i].Frames {
			ok, err := n.name(&rows[i].Frames[j])
			if err != nil {
				return false, err
			}
			named = named || ok
		}
		if named {
			rows[i].Folded = symbolize.Fold(rows[i].Frames)
			changed = true
		}
	}
	return changed, nil
}

// name names a frame, if it needs it, and says whether it did.
func (n *namer) name(f *symbolize.Frame) (bool, error) {
	if f.Kind != symbolize.Native || f.BuildID == "" || f.Offset < 0 || f.Function != "" && !symbolize.IsNameless(f.Function) {
		return false, nil
	}
	n.Nameless++
	file, err := n.file(f)
	if err != nil {
		return false, err
	}
	if file != nil {
		if found := file.Frame(uint64(f.Offset)); found.Function != "" && found.Function != f.Function {
			if !symbolize.IsNameless(found.Function) {
				n.Named.Named++
			}
			f.Function = found.Function
			return true, nil
		}
	}
	missing := n.wanted[f.BuildID]
	if missing == nil {
		missing = &MissingFile{Module: f.Module, BuildID: f.BuildID, Found: file != nil}
		n.wanted[f.BuildID] = missing
	}
	missing.Frames++
	return false, nil
}

func (n *namer) file(f *symbolize.Frame) (*symbolize.File, error) {
	if file, ok := n.files[f.BuildID]; ok {
		return file, nil
	}
	e, err := n.dir.Open(f.BuildID)
	if err != nil {
		return nil, err
	}
	var file *symbolize.File
	if e != nil {
		n.open = append(n.open, e)
		file = symbolize.NewFile(e, f.Module)
	}
	n.files[f.BuildID] = file
	return file, nil
}

func (n *namer) close() (err error) {
	for _, e := range n.open {
		err = errors.Join(err, e.Close())
	}
	return err
}
