package profile

import (
	"fmt"
	"io"

	"github.com/google/pprof/profile"

	"github.com/ebpfprof/ebpfprof/symbolize"
)

// WritePprof writes the gzipped form that `go tool pprof` and its web page read:
// samples and nanoseconds of each stack, frames with file and line or address.
// The group is the label "group", why a stack is cut the label "cut".
func (p Profile) WritePprof(w io.Writer, offCPU bool) error {
	b := pprofBuilder{
		out:       &profile.Profile{PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}},
		locations: map[symbolize.Frame]*profile.Location{}, functions: map[[2]string]*profile.Function{}, mappings: map[[2]string]*profile.Mapping{},
	}
	kind := "cpu"
	if offCPU {
		kind = "delay"
	}
	b.out.SampleType = []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: kind, Unit: "nanoseconds"}}
	b.out.DefaultSampleType = kind
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
	out       *profile.Profile
	locations map[symbolize.Frame]*profile.Location
	functions map[[2]string]*profile.Function // by name and file
	mappings  map[[2]string]*profile.Mapping  // by module and build id
}

// program puts what the threads start in first: pprof takes it for the program.
func (b *pprofBuilder) program(p Profile) {
	for i := range p {
		if n := len(p[i].Frames); n > 0 && p[i].Frames[n-1].Kind == symbolize.Native && p[i].Cut == "" {
			b.mapping(p[i].Frames[n-1].Frame)
			return
		}
	}
}

func (b *pprofBuilder) add(s *Stack) {
	sample := &profile.Sample{Value: []int64{s.Samples, s.WeightNS}, Label: map[string][]string{}}
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

func (b *pprofBuilder) location(f symbolize.Frame) *profile.Location {
	if known := b.locations[f]; known != nil {
		return known
	}
	l := &profile.Location{
		ID: uint64(len(b.locations) + 1), Mapping: b.mapping(f),
		Line: []profile.Line{{Function: b.function(f), Line: int64(f.Line)}},
	}
	if f.Kind != symbolize.Python && f.Offset > 0 {
		l.Address = uint64(f.Offset)
	}
	b.locations[f] = l
	b.out.Location = append(b.out.Location, l)
	return l
}

func (b *pprofBuilder) function(f symbolize.Frame) *profile.Function {
	name := f.Function
	if name == "" || f.Kind == symbolize.Kernel {
		name = f.Label()
	}
	key := [2]string{name, f.File}
	if known := b.functions[key]; known != nil {
		return known
	}
	function := &profile.Function{ID: uint64(len(b.functions) + 1), Name: name, SystemName: name, Filename: f.File}
	b.functions[key] = function
	b.out.Function = append(b.out.Function, function)
	return function
}

// mapping stands for a module: addresses are the file's own, from 0 on.
func (b *pprofBuilder) mapping(f symbolize.Frame) *profile.Mapping {
	if f.Module == "" {
		return nil
	}
	key := [2]string{f.Module, f.BuildID}
	if known := b.mappings[key]; known != nil {
		return known
	}
	m := &profile.Mapping{
		ID: uint64(len(b.mappings) + 1), Limit: 1<<63 - 1, File: f.Module, BuildID: f.BuildID, HasFunctions: true,
	}
	b.mappings[key] = m
	b.out.Mapping = append(b.out.Mapping, m)
	return m
}
