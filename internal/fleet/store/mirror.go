package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Entry is a file in a store.
type Entry struct {
	Key   string
	Bytes int64
}

// keyTime is how keys write the time of their first row.
const keyTime = "20060102T150405.000000000Z"

// At is the time of the first row of a file, as its key says; the zero time if it does not.
func (e Entry) At() time.Time {
	text, _, _ := strings.Cut(path.Base(e.Key), "-")
	at, err := time.Parse(keyTime, text)
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
// last, if the name is empty) from some time before its newest file on. It tells
// progress, if that is not nil, how many files of how many are there. The directory is
// a store of the same files afterwards. Only the partitions that it needs are listed: a
// fleet puts millions of files a day into its store.
func Mirror(ctx context.Context, b *Bucket, job string, since time.Duration, to string, progress func(done, of int)) error {
	var newest time.Time
	var err error
	if partition := "job=" + escape(job); job != "" {
		newest, err = b.newest(ctx, patterns+partition+"/")
		job = partition
	} else {
		job, newest, err = b.lastJob(ctx)
	}
	switch {
	case err != nil:
		return err
	case newest.IsZero():
		return fmt.Errorf("%s is %w: it has no patterns of this job", b, ErrNoStore)
	}
	wanted, err := b.since(ctx, job, newest.Add(-since-slack))
	if err != nil {
		return err
	}
	directory, err := NewDirectory(to)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(to, Version), 0o700); err != nil {
		return fmt.Errorf("fetching the store: %w", err)
	}
	for i, e := range wanted {
		if progress != nil {
			progress(i, len(wanted))
		}
		if err := b.fetch(ctx, e, directory); err != nil {
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
	tables, err := b.partitions(ctx, Version+"/")
	if err != nil {
		return nil, err
	}
	var bytes int64
	for _, table := range tables {
		days, err := b.partitions(ctx, Version+"/"+table+"/"+job+"/")
		if err != nil {
			return nil, err
		}
		for _, day := range days {
			if day < from.UTC().Format(dated) && table != FeedbackTable {
				continue
			}
			entries, err := b.entries(ctx, Version+"/"+table+"/"+job+"/"+day+"/")
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				if table != FeedbackTable && e.At().Before(from) || path.Ext(e.Key) != ".parquet" {
					continue
				}
				wanted = append(wanted, e)
				if bytes += e.Bytes; bytes > mostMirrored || len(wanted) > mostMirroredFiles {
					return nil, fmt.Errorf("%w: more than %d files, or %d MiB: ask for less with --job and --since", ErrTooLarge, mostMirroredFiles, mostMirrored>>20)
				}
			}
		}
	}
	return wanted, nil
}

// newest is the time of the newest file below a partition of days; zero without any.
func (b *Bucket) newest(ctx context.Context, prefix string) (newest time.Time, err error) {
	days, err := b.partitions(ctx, prefix)
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

// lastJob is the partition of the job whose patterns begin last, and when they do.
func (b *Bucket) lastJob(ctx context.Context) (job string, newest time.Time, err error) {
	jobs, err := b.partitions(ctx, patterns)
	if err != nil {
		return "", newest, err
	}
	for _, j := range jobs {
		at, err := b.newest(ctx, patterns+j+"/")
		if err != nil {
			return "", newest, err
		}
		if at.After(newest) {
			job, newest = j, at
		}
	}
	return job, newest, nil
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
