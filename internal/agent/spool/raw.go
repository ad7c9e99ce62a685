package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/sinks"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Raw is the dataset of one window, in the spool. A nil one keeps nothing.
type Raw struct {
	dataset *output.Dataset
	Sink    *sinks.Lenient
}

// ErrNone says that no spool is wanted.
var ErrNone = errors.New("spool_mb is 0")

// Open makes a dataset in the spool after making room for it.
func Open(c config.Config, job string, start time.Time) (*Raw, error) {
	if c.SpoolMB == 0 {
		return nil, ErrNone
	}
	if err := Check(c.Spool); err != nil {
		return nil, err
	}
	if err := MakeRoom(c.Spool, c.SpoolMB<<20); err != nil {
		return nil, err
	}
	dataset, err := output.Create(filepath.Join(c.Spool, Name(start, job)), output.Options{Access: output.PrivateAccess()})
	if err != nil {
		return nil, err
	}
	return &Raw{dataset, &sinks.Lenient{To: c.Sink(dataset)}}, nil
}

// Begin notes what is recorded.
func (r *Raw) Begin(recording event.Recording) {
	if r != nil {
		_ = r.Sink.Keep(r.dataset.Session(recording))
	}
}

// End closes the dataset and says how large it is, and what of it could not be written.
func (r *Raw) End() (bytes int64, err error) {
	if r == nil {
		return 0, nil
	}
	_ = r.Sink.Keep(r.dataset.Close())
	for _, t := range r.dataset.Stats() {
		bytes += t.Bytes
	}
	return bytes, r.Sink.Failed
}

// Directory is where the dataset is; "" where nothing is kept.
func (r *Raw) Directory() string {
	if r == nil {
		return ""
	}
	return r.dataset.Dir()
}

// Discard removes what there is.
func (r *Raw) Discard() {
	if r != nil {
		_ = r.dataset.Discard()
	}
}

// MakeRoom removes the oldest recordings of the spool until the rest is below a size.
func MakeRoom(spool string, most int64) error {
	entries, err := os.ReadDir(spool)
	if err != nil {
		return fmt.Errorf("making room in the spool: %w", err)
	}
	type kept struct {
		name  string
		bytes int64
	}
	var all []kept
	var total int64
	for _, e := range entries {
		if !e.IsDir() || e.Name() == outboxName || e.Name() == profilesName || e.Name() == windowsName {
			continue
		}
		k := kept{name: filepath.Join(spool, e.Name())}
		_ = filepath.WalkDir(k.name, func(_ string, f fs.DirEntry, err error) error {
			if err == nil && f.Type().IsRegular() {
				if info, err := f.Info(); err == nil {
					k.bytes += info.Size()
				}
			}
			return nil
		})
		all, total = append(all, k), total+k.bytes
	}
	slices.SortFunc(all, func(a, b kept) int { return cmp.Compare(a.name, b.name) }) // names begin with the time
	for _, k := range all {
		if total <= most {
			return nil
		}
		if err := os.RemoveAll(k.name); err != nil {
			return fmt.Errorf("making room in the spool: %w", err)
		}
		total -= k.bytes
	}
	return nil
}
