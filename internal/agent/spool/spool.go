// Package spool is what an agent keeps on its node's disk: raw events of windows, the oldest
// out first, what waits for the store and for a collector, and when windows were.
package spool

import (
	"context"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/fleet/outbox"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// The directories of a spool that are no recordings: patterns that wait for the store,
// samples that wait for a collector, and cool-downs.
const (
	outboxName   = "outbox"
	profilesName = "profiles"
	windowsName  = "windows"
)

// Outbox is where workers write what is for the store, and the supervisor sends it from.
func Outbox(spool string) (*store.Directory, error) {
	if err := Check(spool); err != nil {
		return nil, err
	}
	return outbox.Open(filepath.Join(spool, outboxName))
}

// Profiles is where the samples of windows wait for a collector.
func Profiles(spool string) (*store.Directory, error) {
	if err := Check(spool); err != nil {
		return nil, err
	}
	return outbox.Open(filepath.Join(spool, profilesName))
}

// PutProfile has the samples of a window wait for the collector.
func PutProfile(ctx context.Context, spool string, of store.Partition, content []byte) error {
	queue, err := Profiles(spool)
	if err != nil {
		return err
	}
	return queue.Put(context.WithoutCancel(ctx), strings.TrimSuffix(of.Key(content), ".parquet")+".pb.gz", content)
}

// Name is what something of a job is called in the spool that began at a time: such names
// are in order of time. Jobs choose their own names: what would be a path in one is escaped.
func Name(start time.Time, job string) string {
	name := start.UTC().Format("20060102T150405Z") + "-" + url.PathEscape(job)
	return name[:min(len(name), 200)]
}

// Bytes are those of the files below a directory. Files go while they are looked at.
func Bytes(directory string) (held int64, err error) {
	err = filepath.WalkDir(directory, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return ignoreGone(err)
		}
		info, err := entry.Info()
		if err == nil {
			held += info.Size()
		}
		return ignoreGone(err)
	})
	return held, err
}

func ignoreGone(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
