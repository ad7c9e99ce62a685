package export

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// Kind is what a format holds of a dataset.
type Kind int

// The kinds.
const (
	Timeline Kind = iota // every span at its time
	Sums                 // call stacks and the time spent in each
	Memory               // allocations over time
)

// Format is a form that other tools read. To add one, write a file with a Format and
// add it to formats: the command's help and completion follow.
type Format struct {
	Name       string
	Help       string // which tools read it
	Kind       Kind
	Compressed bool // the form itself is compressed
	write      func(*stream, io.Writer) error
}

var formats = []Format{perfetto, kineto, pprofFormat, speedscope, folded, otlpFormat}

// Formats are the formats that Write knows, the default first.
func Formats() []Format { return slices.Clone(formats) }

// Names are the names of formats.
func Names(formats []Format) []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.Name
	}
	return names
}

// Write writes the dataset to w in the format of a name.
func Write(ctx context.Context, db *dataset.DB, w io.Writer, format string, o Options) (*Result, error) {
	i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == format })
	if i < 0 {
		return nil, fmt.Errorf("unknown format %q: choose one of %s", format, strings.Join(Names(formats), ", "))
	}
	s := &stream{ctx: ctx, db: db, options: o, result: &Result{}}
	if err := s.choose(); err != nil {
		return nil, err
	}
	if formats[i].Kind == Sums {
		if err := s.addUp(); err != nil {
			return nil, err
		}
	}
	return s.result, formats[i].write(s, w)
}
