// Package joiner makes one dataset of several hosts' recordings of a job. What it needs of them
// stands in their tables alone: which ranks they have, and when these met in collectives.
//
// Processes, spans and slices get numbers that no two recordings share, and all times go onto
// the clock of the recording with the lowest rank. Rows are taken over otherwise as they are;
// what analyses had saved is left out, as it speaks of one host's part.
package joiner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/derived"
	"github.com/ebpfprof/ebpfprof/internal/dataset/keys"
	"github.com/ebpfprof/ebpfprof/output"
)

// Options of Join.
type Options struct {
	ToolVersion string
	// Progress is called with how many of the files have been written; nil for none.
	Progress func(done, of int)
}

// Summary says what was joined.
type Summary struct {
	Clocks   []Clock // the reference first
	Ranks    int     // that the recordings have together
	Rows     int64
	Warnings []string
}

// Join writes one dataset of several into dir, which must be empty or not exist. When it fails
// nothing is left behind.
func Join(ctx context.Context, datasets []string, dir string, o Options) (*Summary, error) {
	j, err := begin(ctx, datasets)
	if err != nil {
		return nil, err
	}
	frame, err := output.CreateFrame(dir, o.ToolVersion, output.Access{})
	if err != nil {
		return nil, err
	}
	if err := j.write(ctx, frame, dir, o); err != nil {
		return nil, errors.Join(err, frame.Discard())
	}
	return &j.summary, frame.Close()
}

// joining is what is written.
type joining struct {
	recordings []*recording // in order of their lowest ranks
	of         map[string]map[string]*recording
	files      []source
	shifts     keys.Shifts // by the recordings' new names
	twice      map[int64]bool
	summary    Summary
}

// source is a file of one of the datasets.
type source struct{ dataset, table, path string }

func begin(ctx context.Context, datasets []string) (*joining, error) {
	j := &joining{of: map[string]map[string]*recording{}, twice: map[int64]bool{}}
	for _, path := range datasets {
		if err := j.open(ctx, path); err != nil {
			return nil, err
		}
	}
	if len(j.recordings) < 2 {
		return nil, fmt.Errorf("%s is one recording: there is nothing to join it with", datasets[0])
	}
	slices.SortStableFunc(j.recordings, func(a, b *recording) int {
		return cmp.Or(cmp.Compare(a.lowest(), b.lowest()), cmp.Compare(a.started, b.started))
	})
	if err := oneJob(j.recordings); err != nil {
		return nil, err
	}
	j.name()
	var numbers []keys.Recording
	ids := map[int64]bool{}
	for _, r := range j.recordings {
		n := r.numbers
		n.Session = r.renamed
		numbers = append(numbers, n)
		for id := range r.ids {
			j.twice[id], ids[id] = ids[id], true
		}
	}
	var err error
	if j.shifts, err = keys.For(numbers); err != nil {
		return nil, err
	}
	if text := missing(j.recordings); text != "" {
		j.summary.Warnings = append(j.summary.Warnings, text)
	}
	for _, r := range j.recordings {
		j.summary.Ranks += len(r.ranks)
	}
	return j, j.setClocks()
}

// open takes a dataset in.
func (j *joining) open(ctx context.Context, path string) error {
	db, err := dataset.Open(path)
	if err != nil {
		return err
	}
	defer db.Close()
	if j.of[db.Root()] != nil {
		return fmt.Errorf("%s was named twice", path)
	}
	for _, w := range db.Warnings() {
		j.summary.Warnings = append(j.summary.Warnings, path+": "+w)
	}
	all, err := read(ctx, db, path)
	if err != nil {
		return err
	}
	j.of[db.Root()] = map[string]*recording{}
	for _, r := range all {
		if r.shift = db.Shift(r.session); r.shift != (keys.Shift{}) {
			return fmt.Errorf("%s has recordings that were copied into one directory: join them as they were", path)
		}
		j.of[db.Root()][r.session] = r
	}
	j.recordings = append(j.recordings, all...)
	for _, t := range output.Schema() {
		for _, file := range db.Files(t.Name) {
			j.files = append(j.files, source{db.Root(), t.Name, file})
		}
	}
	return nil
}

// lowest is the recording's lowest rank; those without one come last.
func (r *recording) lowest() int64 {
	if len(r.ranks) == 0 {
		return 1 << 62
	}
	return r.ranks[0]
}

// name gives recordings of one name, as imports of files of one name are, names of their own.
func (j *joining) name() {
	taken := map[string]bool{}
	for _, r := range j.recordings {
		for n := 2; taken[r.renamed]; n++ {
			r.renamed = fmt.Sprintf("%s-%d", r.session, n)
		}
		taken[r.renamed] = true
	}
}

// setClocks compares each clock with the one among those known that tells it best, beginning
// with the first recording's.
func (j *joining) setClocks() error {
	first := j.recordings[0]
	first.clock = Clock{Method: Reference, Reference: first.renamed}
	known, rest := first, slices.Clone(j.recordings[1:])
	for known != nil {
		best := -1
		for i, r := range rest {
			c, ok, err := r.against(known)
			if err != nil {
				return err
			}
			if ok && (r.clock.Method == "" || c.Error < r.clock.Error) {
				r.clock = c
			}
			if r.clock.Method != "" && (best < 0 || r.clock.Error < rest[best].clock.Error) {
				best = i
			}
		}
		known = nil
		if best >= 0 {
			known = rest[best]
			rest = slices.Delete(rest, best, best+1)
		}
	}
	for _, r := range rest {
		r.clock = Clock{Method: Unknown, Reference: first.renamed}
		j.summary.Warnings = append(j.summary.Warnings, fmt.Sprintf(
			"how far the clock of %s is from that of %s is not known: fewer than %d collectives are in both recordings; do not compare "+
				"times of the two",
			r.name(), first.name(), leastMeetings))
	}
	for _, r := range j.recordings {
		r.clock.Session, r.clock.Host = r.renamed, r.host
		j.summary.Clocks = append(j.summary.Clocks, r.clock)
	}
	return nil
}

// against compares the recording's clock with one that is known.
func (r *recording) against(k *recording) (Clock, bool, error) {
	c, met, contradicts := compare(k.met, r.met)
	if met && contradicts {
		return c, false, fmt.Errorf("%w: ranks of %s leave collectives before those of %s enter them, however the clocks are set: "+
			"these are two runs of the job", ErrOtherJob, r.name(), k.name())
	}
	if r.boot != "" && r.boot == k.boot && !r.imported && !k.imported {
		// One kernel's clock counts for both. Collectives say whether that can be.
		kernel := Clock{Method: Kernel, Ahead: r.offset - k.offset, Collectives: c.Collectives}
		if apart := kernel.Ahead - c.Ahead; !met || max(apart, -apart) <= c.Error {
			return kernel.after(k.clock), true, nil
		}
	}
	if !met {
		return c, false, nil
	}
	return c.after(k.clock), true, nil
}

func (j *joining) write(ctx context.Context, frame *output.Frame, dir string, o Options) error {
	described := false
	for i, f := range j.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.Progress != nil {
			o.Progress(i, len(j.files))
		}
		if f.table == "schema_field" {
			if described {
				continue // each recording describes the tables alike
			}
			described = true
		}
		var rows int64
		err := frame.Write(f.table, fmt.Sprintf("%s-%05d.parquet", f.table, i), func(to io.Writer) (err error) {
			rows, err = j.rewrite(f, to)
			return err
		})
		if err != nil {
			return fmt.Errorf("joining %s: %w", f.path, err)
		}
		j.summary.Rows += rows
	}
	return derived.Write(dir, "clock", clockColumns, j.summary.Clocks)
}
