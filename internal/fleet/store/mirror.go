package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dataset/manifest"
)

// Entry is a file in a store.
type Entry struct {
	Key   string
	Bytes int64
}

// At is the time of the first row of a file, as its key says, and of the newest one of a
// merged file; the zero time if it does not.
func (e Entry) At() time.Time {
	text, _, _ := strings.Cut(path.Base(e.Key), "-")
	at, err := time.Parse(manifest.KeyTime, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// ErrTooLarge is returned by Mirror where it would have to fetch too much.
var ErrTooLarge = errors.New("too much to fetch")

// Bounds of a mirror: who may write into the store must not fill a disk.
const (
	mostMirrored      = 4 << 30
	mostMirroredFiles = 200_000
)

// Slack is how far before what is asked for a mirror begins: a file has rows from the
// time in its key on, of a minute as the agents write them, and of a whole recording as
// `fleet upload` does.
const slack = 24 * time.Hour

// Mirror copies into a directory what a bucket has of a job (of the job that was seen
// last, if the name is empty: of the others a file each, which says that they are there)
// from some time before its newest file on. It tells
// progress, if that is not nil, how many files of how many are there. The directory is
// a store of the same files afterwards. Only the partitions that it needs are listed: a
// fleet puts millions of files a day into its store.
func Mirror(ctx context.Context, b *Bucket, job string, since time.Duration, to string, progress func(done, of int)) error {
	var newest time.Time
	var others []Entry
	var err error
	if partition := "job=" + escape(job); job != "" {
		newest, err = b.newest(ctx, patterns+partition+"/")
		job = partition
	} else {
		job, newest, others, err = b.lastJob(ctx)
	}
	switch {
	case err != nil:
		return err
	case newest.IsZero():
		return fmt.Errorf("%s is %w: it has no patterns of this job", b, ErrNoStore)
	}
	directory, err := NewDirectory(to)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(to, Version), 0o700); err != nil {
		return fmt.Errorf("fetching the store: %w", err)
	}
	for _, e := range others {
		if err := b.fetch(ctx, e, directory); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// What was merged is removed after a while: who is slower than that begins again.
	for range mostMirrorings {
		var wanted []Entry
		if wanted, err = b.since(ctx, job, newest.Add(-since-slack)); err != nil {
			return err
		}
		if err = b.fetchAll(ctx, wanted, directory, progress); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// mostMirrorings of a bucket in which files are merged.
const mostMirrorings = 3

func (b *Bucket) fetchAll(ctx context.Context, wanted []Entry, to *Directory, progress func(done, of int)) error {
	for i, e := range wanted {
		if progress != nil {
			progress(i, len(wanted))
		}
		if err := b.fetch(ctx, e, to); err != nil {
			return err
		}
	}
	if progress != nil {
		progress(len(wanted), len(wanted))
	}
	return nil
}

// patterns is where the table is that says which jobs there are, and until when.
const patterns = Version + "/pattern/"

// dated is the name of a day's partition.
const dated = "date=" + time.DateOnly

// since are the files of a job from some time on, and all that people said of it.
func (b *Bucket) since(ctx context.Context, job string, from time.Time) (wanted []Entry, err error) {
	tables, err := b.Partitions(ctx, Version+"/")
	if err != nil {
		return nil, err
	}
	var bytes int64
	for _, table := range tables {
		days, err := b.Partitions(ctx, Version+"/"+table+"/"+job+"/")
		if err != nil {
			return nil, err
		}
		for _, day := range days {
			if day < from.UTC().Format(dated) && table != FeedbackTable {
				continue
			}
			entries, err := b.counting(ctx, path.Join(table, job, day))
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				if table != FeedbackTable && e.At().Before(from) && !strings.HasPrefix(e.Key, Version+"/"+manifest.Table+"/") {
					continue
				}
				wanted = append(wanted, e)
				if bytes += e.Bytes; bytes > mostMirrored || len(wanted) > mostMirroredFiles {
					return nil, fmt.Errorf("%w: more than %d files, or %d MiB: ask for less with --job and --since", ErrTooLarge, mostMirroredFiles,
						mostMirrored>>20)
				}
			}
		}
	}
	return wanted, nil
}

// counting are the files of a partition that count, and the manifest that says so.
func (b *Bucket) counting(ctx context.Context, partition string) (all []Entry, err error) {
	for range mostMirrorings {
		entries, err := b.entries(ctx, Version+"/"+partition+"/")
		if err != nil {
			return nil, err
		}
		manifests, err := b.entries(ctx, Version+"/"+manifest.Table+"/"+partition+"/")
		if err != nil {
			return nil, err
		}
		var m *manifest.Manifest
		if all = nil; len(manifests) > 0 {
			latest := manifests[len(manifests)-1]
			if m, err = b.manifest(ctx, latest.Key); errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return nil, err
			}
			all = append(all, latest)
		}
		merged := 0
		for _, e := range entries {
			name := path.Base(e.Key)
			if path.Ext(name) != ".parquet" || !m.Counts(name) {
				continue
			}
			if _, is := manifest.GenerationOf(name); is {
				merged++
			}
			all = append(all, e)
		}
		if m == nil || merged == len(m.Files) {
			return all, nil
		}
		// The manifest is newer than the listing: it has a file that the listing has not.
	}
	return all, nil
}

func (b *Bucket) manifest(ctx context.Context, key string) (m *manifest.Manifest, err error) {
	r, err := b.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if m, err = manifest.Decode(r); err != nil {
		return nil, fmt.Errorf("reading the store: %s: %w", key, err)
	}
	return m, nil
}

// newest is the time of the newest file below a partition of days; zero without any.
func (b *Bucket) newest(ctx context.Context, prefix string) (newest time.Time, err error) {
	days, err := b.Partitions(ctx, prefix)
	if err != nil || len(days) == 0 {
		return newest, err
	}
	entries, err := b.entries(ctx, prefix+slices.Max(days)+"/")
	for _, e := range entries {
		if at := e.At(); at.After(newest) {
			newest = at
		}
	}
	return newest, err
}

func (b *Bucket) fetch(ctx context.Context, e Entry, to *Directory) error {
	r, err := b.Get(ctx, e.Key)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(r, e.Bytes+1))
	if err = errors.Join(b.told("reading the store", err), r.Close()); err != nil {
		return err
	}
	if int64(len(content)) != e.Bytes {
		return fmt.Errorf("reading the store: %s changed while it was read", e.Key)
	}
	return to.Put(ctx, e.Key, content)
}
