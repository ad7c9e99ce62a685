// Package recording has the tracer record for bench, into datasets that are thrown away.
package recording

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer"
)

// Scratch is a dataset that is thrown away.
type Scratch struct {
	*output.Dataset
	Dir string
}

func NewScratch() (*Scratch, error) {
	dir, err := os.MkdirTemp("", "ebpfprof-bench-")
	if err != nil {
		return nil, err
	}
	d, err := output.Create(filepath.Join(dir, "dataset"), output.Options{})
	if err != nil {
		return nil, err
	}
	return &Scratch{d, dir}, d.Session(tracer.Recording{ID: "bench", StartedNS: time.Now().UnixNano()})
}

func (s *Scratch) Remove() {
	s.Dataset.Close()
	os.RemoveAll(s.Dir)
}

// Traced runs something some time after a session began.
func Traced(options tracer.Options, after time.Duration, run func() error) (tracer.Stats, error) {
	sink, err := NewScratch()
	if err != nil {
		return tracer.Stats{}, err
	}
	defer sink.Remove()
	return TracedInto(sink, options, after, run)
}

// TracedInto is traced for a sink of the caller's.
func TracedInto(sink tracer.Sink, options tracer.Options, after time.Duration, run func() error) (tracer.Stats, error) {
	session, err := tracer.Open(context.Background(), options, sink)
	if err != nil {
		return tracer.Stats{}, err
	}
	defer session.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- session.Run(ctx) }()
	time.Sleep(after)
	err = run()
	cancel()
	if failed := <-ended; err == nil {
		err = failed
	}
	return session.Stats(), err
}

func TableBytes(dir string) (bytes int64) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.parquet"))
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}
