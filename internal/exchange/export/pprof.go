package export

import (
	"fmt"
	"io"

	pprof "github.com/google/pprof/profile"

	"github.com/ebpfprof/ebpfprof/internal/model/profile"
	"github.com/ebpfprof/ebpfprof/symbolize"
)

var pprofFormat = Format{
	Name: "pprof", Kind: Sums, Compressed: true, Help: "go tool pprof and its web page",
	write: func(s *stream, w io.Writer) error { return WritePprof(w, s.sums.profile, s.sums.group.pprof) },
}

// The names that pprof gives to time on the CPU and to time that a thread waited.
const (
	PprofCPU   = "cpu"
	PprofDelay = "delay"
)

// WritePprof writes the gzipped form that `go tool pprof` and its web page read:
// samples and nanoseconds of each stack, frames with file and line or address. kind
// names the nanoseconds. The group is the label "group", why a stack is cut the label "cut".
func WritePprof(w io.Writer, p profile.Profile, kind string) error {
	time := pprof.ValueType{Type: kind, Unit: "nanoseconds"}
	b := pprofBuilder{
		out: &pprof.Profile{
			PeriodType: &pprof.ValueType{Type: time.Type, Unit: time.Unit}, DefaultSampleType: kind,
			SampleType: []*pprof.ValueType{{Type: "samples", Unit: "count"}, &time},
		},
		locations: map[symbolize.Frame]*pprof.Location{},
		functions: map[[2]string]*pprof.Function{}, mappings: map[[2]string]*pprof.Mapping{},
	}
	b.program(p)
	for i := range p {
		b.add(&p[i])
	}
	if err := b.out.CheckValid(); err != nil {
		return fmt.Errorf("making a pprof profile: %w", err)
	}
	return b.out.Write(w)
}

type pprofBuilder struct {
	out       *pprof.Profile
	locations map[symbolize.Frame]*pprof.Location
	functions map[[2]string]*pprof.Function // by name and file
	mappings  map[[2]string]*pprof.Mapping  // by module and build id
}

// program adds the module that threads start in first: pprof takes the first mapping for the program.
func (b *pprofBuilder) program(p profile.Profile) {
	for i := range p {
		if n := len(p[i].Frames); n > 0 && p[i].Frames[n-1].Kind == symbolize.Native && p[i].Cut == "" {
			b.mapping(p[i].Frames[n-1].Frame)
			return
		}
	}
}

func (b *pprofBuilder) add(s *profile.Stack) {
	sample := &pprof.Sample{Value: []int64{s.Samples, s.WeightNS}, Label: map[string][]string{}}
	for key, value := range map[string]string{"group": s.Group, "cut": s.Cut} {
		if value != "" {
			sample.Label[key] = []string{value}
		}
	}
	for _, f := range s.Frames {
		sample.Location = append(sample.Location, b.location(f.Frame))
	}
	b.out.Sample = append(b.out.Sample, sample)
}

func (b *pprofBuilder) location(f symbolize.Frame) *pprof.Location {
	if known := b.locations[f]; known != nil {
		return known
	}
	l := &pprof.Location{
		ID: uint64(len(b.locations) + 1), Mapping: b.mapping(f),
		Line: []pprof.Line{{Function: b.function(f), Line: int64(f.Line)}},
	}
	if f.Kind != symbolize.Python && f.Offset > 0 {
		l.Address = uint64(f.Offset)
	}
	b.locations[f] = l
	b.out.Location = append(b.out.Location, l)
	return l
}

func (b *pprofBuilder) function(f symbolize.Frame) *pprof.Function {
	name := f.Function
	if name == "" || f.Kind == symbolize.Kernel {
		name = f.Label()
	}
	key := [2]string{name, f.File}
	if known := b.functions[key]; known != nil {
		return known
	}
	function := &pprof.Function{ID: uint64(len(b.functions) + 1), Name: name, SystemName: name, Filename: f.File}
	b.functions[key] = function
	b.out.Function = append(b.out.Function, function)
	return function
}

// mapping is of a module: addresses are the file's own, from 0 on.
func (b *pprofBuilder) mapping(f symbolize.Frame) *pprof.Mapping {
	if f.Module == "" {
		return nil
	}
	key := [2]string{f.Module, f.BuildID}
	if known := b.mappings[key]; known != nil {
		return known
	}
	m := &pprof.Mapping{
		ID: uint64(len(b.mappings) + 1), Limit: 1<<63 - 1, File: f.Module, BuildID: f.BuildID, HasFunctions: true,
	}
	b.mappings[key] = m
	b.out.Mapping = append(b.out.Mapping, m)
	return m
}
