package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/sinks"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// raw is the dataset of one window, in the spool.
type raw struct {
	dataset *output.Dataset
	sink    *sinks.Lenient
}

// openRaw makes a dataset in the spool after making room for it. Without spool_mb
// nothing is kept: it returns nil, which all methods take.
func openRaw(c Config, job string, start time.Time) (*raw, error) {
	if c.SpoolMB == 0 {
		return nil, errors.New("spool_mb is 0")
	}
	if err := os.MkdirAll(c.Spool, 0o700); err != nil {
		return nil, err
	}
	if err := trim(c.Spool, c.SpoolMB<<20); err != nil {
		return nil, err
	}
	name := start.UTC().Format("20060102T150405Z") + "-" + url.PathEscape(job)
	dataset, err := output.Create(filepath.Join(c.Spool, name[:min(len(name), 200)]), output.Options{Access: output.PrivateAccess()})
	if err != nil {
		return nil, err
	}
	return &raw{dataset, &sinks.Lenient{Sink: c.sink(dataset)}}, nil
}

func (r *raw) begin(recording event.Recording) {
	if r != nil {
		_ = r.sink.Keep(r.dataset.Session(recording))
	}
}

// end closes the dataset and says how large it is, and what of it could not be written.
func (r *raw) end() (bytes int64, err error) {
	if r == nil {
		return 0, nil
	}
	_ = r.sink.Keep(r.dataset.Close())
	for _, t := range r.dataset.Stats() {
		bytes += t.Bytes
	}
	return bytes, r.sink.Failed
}

// directory is where the dataset is; "" where nothing is kept.
func (r *raw) directory() string {
	if r == nil {
		return ""
	}
	return r.dataset.Dir()
}

func (r *raw) discard() {
	if r != nil {
		_ = r.dataset.Discard()
	}
}

// trim removes the oldest recordings of the spool until the rest is below a size.
func trim(spool string, most int64) error {
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
