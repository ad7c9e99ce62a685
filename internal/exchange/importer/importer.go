// Package importer turns what other tools recorded into a dataset: traces of
// torch.profiler (Kineto's JSON, also with gzip), of Nsight Systems (.sqlite),
// of rocprofv3 (rocpd's database, JSON) and of Perfetto. The rows keep the meaning that the schema gives them; work on a
// device, which a recording of our own has only bounds of, becomes spans of
// layer device.
//
// A file is read twice, so that memory depends on the number of rows and not on
// what is in them: first for who stands in whom and who launched what, then for
// the rows themselves.
package importer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// ErrFormat is wrapped by errors about files that are not what they should be.
var ErrFormat = errors.New("cannot be imported")

// Options of Import.
type Options struct {
	ToolVersion string
	CommandLine string
	Redact      bool // what internal/redact leaves out
	// Progress is called now and then with how much of a file has been read, in both
	// passes together; nil for none.
	Progress func(file string, part float64)
}

// Summary says what was imported.
type Summary struct {
	Files, Spans, DeviceRows, Flows, MemoryRows int
	Warnings                                    []event.Warning
}

// source is one file. Both passes must hand over the same rows in the same order.
type source interface {
	name() string // of the tool
	// describe is asked after the first pass.
	describe() description
	read(ctx context.Context, brief bool, h handler, progress func(float64)) error
	// again is asked after the first pass: what stands late in the file changes what its rows are.
	again() bool
}

// opened is a file that is to be imported, or why it can't be.
type opened struct {
	source
	err error
}

type handler struct {
	row    func(*row) error
	edge   func(*edge) error
	memory func(*event.Memory) error
}

// description is what a file says beside its rows.
type description struct {
	// base is added to the first pass's times, in which the file's own clock counts.
	base            int64
	rank, worldSize *int32
	deviceName      string
	framework       string
	// Of an export of ours; "" is not told.
	frameworkVersion, python, processor, level string
	processNames                               map[int32]string
	threadNames                                map[[2]int32]string
	host                                       string
	warnings                                   []event.Warning
}

// Import writes the files, the ranks of one job, into a new dataset. When it
// fails nothing is left behind.
func Import(ctx context.Context, files []string, dir string, o Options) (*Summary, error) {
	if _, err := os.Stat(dir); err == nil {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			return nil, fmt.Errorf("cannot import into %s: %w: choose another or empty it", dir, output.ErrNotEmpty)
		}
	}
	sources := make([]opened, len(files))
	for i, path := range files {
		s, err := open(path)
		if err != nil && !errors.Is(err, ErrFormat) {
			return nil, err
		}
		sources[i] = opened{s, err}
	}
	w := &writing{options: o, files: files, dir: dir, pids: map[int32]int{}}
	err := w.all(ctx, sources)
	if w.dataset != nil {
		err = errors.Join(err, w.dataset.Close())
	}
	if err != nil {
		if w.dataset != nil {
			err = errors.Join(err, w.dataset.Discard())
		}
		return nil, err
	}
	return &w.summary, nil
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// sessionID is the same for the same files.
func sessionID(files []string) string {
	h := sha256.New()
	for _, f := range files {
		info, err := os.Stat(f)
		if err == nil {
			fmt.Fprintln(h, filepath.Base(f), info.Size())
		}
	}
	name := filepath.Base(files[0])
	name, _, _ = strings.Cut(name, ".")
	name = strings.Trim(unfit.ReplaceAllString(name, "_"), "_")
	return fmt.Sprintf("import-%.60s-%x", name, h.Sum(nil)[:4])
}

var rankInName = regexp.MustCompile(`(?i)rank[-_=. ]?(\d{1,6})`)

// rankOf is the rank that a file's name gives, if any.
func rankOf(path string) *int32 {
	m := rankInName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return nil
	}
	n, err := strconv.ParseInt(m[1], 10, 32)
	if err != nil {
		return nil
	}
	rank := int32(n)
	return &rank
}
