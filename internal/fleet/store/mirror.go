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
// a store of the same files afterwards.
func Mirror(ctx context.Context, b *Bucket, job string, since time.Duration, to string, progress func(done, of int)) error {
	prefix := Version + "/"
	entries, err := b.entries(ctx, prefix)
	if err != nil {
		return err
	}
	if job == "" {
		if job = lastJob(entries); job == "" {
			return fmt.Errorf("%s is %w: it has no patterns", b, ErrNoStore)
		}
	} else {
		job = "job=" + escape(job)
	}
	wanted := slices.DeleteFunc(entries, func(e Entry) bool { return !slices.Contains(strings.Split(e.Key, "/"), job) })
	var newest time.Time
	for _, e := range wanted {
		if e.At().After(newest) {
			newest = e.At()
		}
	}
	from := newest.Add(-since - slack)
	wanted = slices.DeleteFunc(wanted, func(e Entry) bool { return e.At().Before(from) || path.Ext(e.Key) != ".parquet" })
	var bytes int64
	for _, e := range wanted {
		bytes += e.Bytes
	}
	if bytes > mostMirrored || len(wanted) > mostMirroredFiles {
		return fmt.Errorf("%w: %d files of %d MiB: ask for less with --job and --since", ErrTooLarge, len(wanted), bytes>>20)
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

// lastJob is the partition of the job whose patterns begin last.
func lastJob(entries []Entry) (job string) {
	var last time.Time
	for _, e := range entries {
		parts := strings.Split(e.Key, "/")
		if len(parts) == 6 && parts[1] == "pattern" && (job == "" || e.At().After(last)) {
			job, last = parts[2], e.At()
		}
	}
	return job
}
