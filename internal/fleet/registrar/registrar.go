// Package registrar keeps a store in order: it merges the many small files of a job and a
// day into few, and removes what is older than it is to be kept. Nobody else removes
// anything from a store.
//
// A pass may end at any step, and others may run beside it: each step leaves the store as
// readers need it (package manifest says what counts), and the next pass goes on from there.
package registrar

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dataset/manifest"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// Store is what a registrar needs of one.
type Store interface {
	store.Store
	// Create is Put of a key that is free; store.ErrTaken if it is not.
	Create(ctx context.Context, key string, content []byte) error
	// Replace is Put of a key that may be there: then it has the new content.
	Replace(ctx context.Context, key string, content []byte) error
	Remove(ctx context.Context, key string) error
	// Partitions are the names one level below a prefix, which ends with a slash.
	Partitions(ctx context.Context, prefix string) ([]string, error)
}

// Options say how a store is kept.
type Options struct {
	Least   int           // so many files of a partition are merged, and fewer are not
	Target  int64         // bytes from which on a merged file is large enough
	Grace   time.Duration // for which a merged file stays, for who has listed it already
	Days    int           // that patterns, steps and uploads are kept; 0 for ever
	Iceberg bool          // tables of Iceberg are begun; those that there are are kept anyway
	DryRun  bool          // says what it would do
	Now     func() time.Time
}

// Default options; `docs/fleet.md` has them.
const (
	DefaultLeast  = 4
	DefaultTarget = 64 << 20
	DefaultGrace  = 15 * time.Minute
	DefaultDays   = 90
	requestDays   = 7 // requests for windows: nobody reads one after a minute
)

// Result is what a pass did.
type Result struct {
	Partitions   int      `json:"partitions"`     // that were looked at
	Merged       int      `json:"merged"`         // small files that do not count any more
	Into         int      `json:"into"`           // large ones
	Rows         int64    `json:"rows"`           // in these
	Removed      int      `json:"removed"`        // files
	Waiting      int      `json:"waiting"`        // to be removed, once the grace is over
	Expired      int      `json:"expired"`        // files of them that were too old
	OtherRuns    int      `json:"other_runs"`     // partitions in which another registrar was faster
	Tables       int      `json:"iceberg_tables"` // of Iceberg that were changed
	Notes        []string `json:"notes"`          // what was left alone, and why
	mayBeExpired bool
}

// ErrUnsafe is returned of a store in which two registrars would do harm.
var ErrUnsafe = errors.New("the store does not tell which of two writers came first")

type pass struct {
	ctx context.Context
	s   Store
	Options
	*Result
	damaged map[string]bool // files that were left as they are
}

// Pass goes over the store once. An error of one partition leaves the others done.
func Pass(ctx context.Context, s Store, o Options) (*Result, error) {
	p := &pass{ctx, s, o, &Result{Notes: []string{}}, map[string]bool{}}
	if !o.DryRun {
		if err := p.checkCreate(); err != nil {
			return p.Result, err
		}
	}
	tables, err := s.Partitions(ctx, store.Version+"/")
	if err != nil {
		return p.Result, err
	}
	days, err := p.days(tables)
	if err != nil {
		return p.Result, err
	}
	p.mayBeExpired = p.clockIsPlausible(days)
	// First, so that no table has a file that is removed.
	if err := p.reconcile(days); err != nil {
		return p.Result, err
	}
	var failed []error
	for _, d := range days {
		if ctx.Err() != nil {
			return p.Result, ctx.Err()
		}
		if err := p.day(d); errors.Is(err, store.ErrAway) {
			return p.Result, err
		} else if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", d, err))
		}
	}
	if err := p.removeUnfinished(); err != nil {
		failed = append(failed, err)
	}
	return p.Result, errors.Join(failed...)
}

// unfinishedFor is how long after its last byte a file that has not got its name is
// taken for one whose writer was killed: no write takes a day.
const unfinishedFor = oneDay

// removeUnfinished removes what writers that were killed have left in a directory. A
// bucket has a file whole or not at all.
func (p *pass) removeUnfinished() error {
	directory, is := p.s.(interface {
		Unfinished(prefix string, since time.Time) ([]string, error)
	})
	if !is || !p.mayBeExpired {
		return nil
	}
	keys, err := directory.Unfinished(store.Version+"/", p.Now().Add(-unfinishedFor))
	for _, key := range keys {
		if err = errors.Join(err, p.remove(key)); err == nil {
			p.Removed++
		}
	}
	return err
}

// checkCreate sees whether a key can be taken twice: some servers of S3's protocol take
// no notice of the condition.
func (p *pass) checkCreate() error {
	key := path.Join(store.Version, manifest.Table, "check")
	for range 2 {
		if err := p.s.Create(p.ctx, key, nil); errors.Is(err, store.ErrTaken) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w: nothing was merged or removed", p.s, ErrUnsafe)
}

// A day is a partition: its table, job and date, each as the store names it.
type day string

func (d day) table() string { table, _, _ := strings.Cut(string(d), "/"); return table }

// date is the zero time of what is no day.
func (d day) date() time.Time {
	at, _ := time.Parse("date="+time.DateOnly, path.Base(string(d)))
	return at
}

func (d day) prefix() string { return store.Version + "/" + string(d) + "/" }

func (d day) manifests() string { return path.Join(store.Version, manifest.Table, string(d)) + "/" }

// days are all that the store has, of files or of manifests, the oldest first.
func (p *pass) days(tables []string) (all []day, err error) {
	for _, table := range tables {
		at := store.Version + "/" + table + "/"
		if table == manifest.Table { // of a day that has nothing else any more
			below, err := p.s.Partitions(p.ctx, at)
			if err != nil {
				return nil, err
			}
			for _, table := range below {
				if all, err = p.daysOf(all, table, at+table+"/"); err != nil {
					return nil, err
				}
			}
			continue
		}
		if all, err = p.daysOf(all, table, at); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b day) int {
		if c := a.date().Compare(b.date()); c != 0 {
			return c
		}
		return strings.Compare(string(a), string(b))
	})
	return slices.Compact(all), nil
}

func (p *pass) daysOf(all []day, table, prefix string) ([]day, error) {
	jobs, err := p.s.Partitions(p.ctx, prefix)
	if err != nil {
		return nil, err
	}
	for _, job := range jobs {
		dates, err := p.s.Partitions(p.ctx, prefix+job+"/")
		if err != nil {
			return nil, err
		}
		for _, date := range dates {
			if d := day(path.Join(table, job, date)); !d.date().IsZero() && strings.HasPrefix(job, "job=") {
				all = append(all, d)
			}
		}
	}
	return all, nil
}

// day merges a partition, or removes it.
func (p *pass) day(d day) error {
	p.Partitions++
	if p.expired(d) {
		return p.removeDay(d)
	}
	merging, ok := tables[d.table()]
	if !ok {
		return nil
	}
	// Until nothing is left to merge: a pass takes no more at once than fits into memory.
	for range mostRounds {
		names, err := p.s.List(p.ctx, d.prefix())
		if err != nil {
			return err
		}
		m, err := p.latest(d)
		if err != nil {
			return err
		}
		if err := p.tidy(d, names, m); err != nil {
			return err
		}
		if more, err := p.merge(d, names, m, merging()); err != nil || !more || p.DryRun {
			return err
		}
	}
	return nil
}

const mostRounds = 1000

// latest is the manifest that counts; nil without any.
func (p *pass) latest(d day) (*manifest.Manifest, error) {
	for range 3 {
		keys, err := p.s.List(p.ctx, d.manifests())
		if err != nil {
			return nil, err
		}
		all := manifest.Generations(keys)
		if len(all) == 0 {
			return nil, nil
		}
		content, err := p.read(path.Join(store.Version, manifest.Key(string(d), all[len(all)-1])), mostManifest)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another registrar has put the next one
		}
		if err != nil {
			return nil, err
		}
		return manifest.Decode(strings.NewReader(string(content)))
	}
	return nil, fmt.Errorf("its manifests come and go: try again")
}

const mostManifest = 256 << 20

func (p *pass) read(key string, most int64) ([]byte, error) {
	r, err := p.s.Get(p.ctx, key)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(r, most+1))
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if int64(len(content)) > most {
		return nil, errTooLarge
	}
	return content, nil
}

var errTooLarge = errors.New("too large")

// tidy removes what does not count: what was merged, once those who had listed it before
// have read it, and what a registrar has left that ended before its manifest was put.
func (p *pass) tidy(d day, keys []string, m *manifest.Manifest) error {
	if m == nil {
		return nil
	}
	for _, key := range keys {
		name := path.Base(key)
		at, merged := m.MergedAt(name)
		generation, made := manifest.GenerationOf(name)
		switch {
		case m.Counts(name), made && generation > m.Generation:
			continue // the second is of a registrar that is at work, or will be overtaken
		case merged && p.Now().Sub(time.Unix(0, at)) < p.Grace:
			p.Waiting++
			continue
		}
		if err := p.remove(key); err != nil {
			return err
		}
		p.Removed++
	}
	return nil
}

func (p *pass) remove(key string) error {
	if p.DryRun {
		return nil
	}
	return p.s.Remove(p.ctx, key)
}

// commit has a manifest count. Where another registrar has put one of this generation,
// the files that it names never will.
func (p *pass) commit(d day, m *manifest.Manifest) (won bool, err error) {
	content, err := m.Encode()
	if err != nil {
		return false, err
	}
	key := path.Join(store.Version, manifest.Key(string(d), m.Generation))
	err = p.s.Create(p.ctx, key, content)
	if errors.Is(err, store.ErrTaken) {
		// It may be ours: the answer to a first attempt can be lost.
		there, err := p.read(key, mostManifest)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if string(there) != string(content) {
			return false, nil
		}
	} else if err != nil {
		return false, err
	}
	keys, err := p.s.List(p.ctx, d.manifests())
	if err != nil {
		return true, err
	}
	all := manifest.Generations(keys)
	if len(all) > 0 && all[len(all)-1] > m.Generation {
		// Others went on and have removed the manifest of this generation before we put ours.
		return false, p.s.Remove(p.ctx, key)
	}
	for _, g := range all {
		if g < m.Generation-1 { // readers may be at the one before
			if err := p.s.Remove(p.ctx, path.Join(store.Version, manifest.Key(string(d), g))); err != nil {
				return true, err
			}
		}
	}
	return true, nil
}

func random() (r [8]byte) {
	rand.Read(r[:])
	return r
}

// Sentence says what a pass did, or would do.
func (r *Result) Sentence(dry bool) string {
	if dry {
		return fmt.Sprintf("%d partitions: %d files would be merged, %d removed, %d for their age", r.Partitions, r.Merged, r.Removed, r.Expired)
	}
	s := fmt.Sprintf("%d partitions: %d files became %d (%d rows), %d removed, %d for their age", r.Partitions, r.Merged, r.Into, r.Rows,
		r.Removed, r.Expired)
	if r.Waiting > 0 {
		s += fmt.Sprintf("; %d that were merged are removed later", r.Waiting)
	}
	if r.Tables > 0 {
		s += fmt.Sprintf("; %d tables of Iceberg were brought up to date", r.Tables)
	}
	if r.OtherRuns > 0 {
		s += fmt.Sprintf("; another registrar was faster in %d", r.OtherRuns)
	}
	return s
}
