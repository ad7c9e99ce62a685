// Package otlp writes samples as OpenTelemetry's profiles: the protobuf of OTLP with the
// numbers of version 1.10, which is still in development and may change. Messages are the
// collector's own (pdata/pprofile).
//
// A Builder makes a request of stacks that are added up; a Window is the Sink that adds up
// what a recording samples; a Client sends requests to a collector over HTTP.
package otlp

import (
	"encoding/binary"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/ebpfprof/ebpfprof/symbolize"
)

// Value is what samples count: a name and a unit.
type Value struct{ Name, Unit string }

// Attribute describes a sample; its value is a string or an int64.
type Attribute struct {
	Key   string
	Value any
}

// Builder puts samples together to one request: what they have in common is in it once.
type Builder struct {
	all        pprofile.Profiles
	dictionary pprofile.ProfilesDictionary
	tool       string

	strings    map[string]int32
	functions  map[[2]int32]int32 // by name and file
	mappings   map[[2]string]int32
	locations  map[symbolize.Frame]int32
	stacks     map[string]int32 // by their locations
	attributes map[Attribute]int32
}

// NewBuilder returns one that says which version of the tool made its profiles.
func NewBuilder(tool string) *Builder {
	all := pprofile.NewProfiles()
	d := all.Dictionary()
	// Number 0 of each table stands for what is not known.
	d.StringTable().Append("")
	d.FunctionTable().AppendEmpty()
	d.MappingTable().AppendEmpty()
	d.LocationTable().AppendEmpty()
	d.StackTable().AppendEmpty()
	d.LinkTable().AppendEmpty()
	d.AttributeTable().AppendEmpty()
	return &Builder{all: all, dictionary: d, tool: tool, strings: map[string]int32{"": 0}, functions: map[[2]int32]int32{},
		mappings: map[[2]string]int32{}, locations: map[symbolize.Frame]int32{}, stacks: map[string]int32{}, attributes: map[Attribute]int32{}}
}

// Resource is where samples come from.
type Resource struct {
	builder  *Builder
	profiles pprofile.ProfilesSlice
}

// Resource begins one.
func (b *Builder) Resource(attributes ...Attribute) Resource {
	r := b.all.ResourceProfiles().AppendEmpty()
	for _, a := range attributes {
		set(r.Resource().Attributes().PutEmpty(a.Key), a.Value)
	}
	s := r.ScopeProfiles().AppendEmpty()
	s.Scope().SetName("ebpfprof")
	s.Scope().SetVersion(b.tool)
	return Resource{b, s.Profiles()}
}

func set(to pcommon.Value, value any) {
	switch v := value.(type) {
	case string:
		to.SetStr(v)
	case int64:
		to.SetInt(v)
	default:
		panic(fmt.Sprintf("otlp: an attribute of type %T", value))
	}
}

// Profile is samples of one kind.
type Profile struct {
	builder *Builder
	of      pprofile.Profile
}

// Profile begins one of the resource: of the time from begin on, so long. A period of 0
// says that nothing was sampled periodically.
func (r Resource) Profile(kind Value, beginNS, durationNS int64, every Value, period int64) Profile {
	p := r.profiles.AppendEmpty()
	r.builder.value(p.SampleType(), kind)
	if period > 0 {
		r.builder.value(p.PeriodType(), every)
		p.SetPeriod(period)
	}
	p.SetTime(pcommon.Timestamp(max(beginNS, 0)))
	p.SetDurationNano(uint64(max(durationNS, 0)))
	return Profile{r.builder, p}
}

func (b *Builder) value(to pprofile.ValueType, v Value) {
	to.SetTypeStrindex(b.text(v.Name))
	to.SetUnitStrindex(b.text(v.Unit))
}

// Add adds what a stack, leaf first, has.
func (p Profile) Add(frames []symbolize.Frame, value int64, attributes ...Attribute) {
	s := p.of.Samples().AppendEmpty()
	s.SetStackIndex(p.builder.stack(frames))
	s.Values().Append(value)
	for _, a := range attributes {
		s.AttributeIndices().Append(p.builder.attribute(a))
	}
}

// Marshal returns the request's bytes. Nothing can be added afterwards.
func (b *Builder) Marshal() ([]byte, error) {
	content, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(b.all)
	if err != nil {
		return nil, fmt.Errorf("making profiles of OpenTelemetry: %w", err)
	}
	return content, nil
}

// interned is the number of a key, which add gives the first time.
func interned[K comparable](known map[K]int32, key K, add func() int) int32 {
	n, ok := known[key]
	if !ok {
		n = int32(add())
		known[key] = n
	}
	return n
}

func (b *Builder) text(s string) int32 {
	return interned(b.strings, s, func() int {
		b.dictionary.StringTable().Append(s)
		return b.dictionary.StringTable().Len() - 1
	})
}

func (b *Builder) attribute(a Attribute) int32 {
	return interned(b.attributes, a, func() int {
		to := b.dictionary.AttributeTable().AppendEmpty()
		to.SetKeyStrindex(b.text(a.Key))
		set(to.Value(), a.Value)
		return b.dictionary.AttributeTable().Len() - 1
	})
}

func (b *Builder) stack(frames []symbolize.Frame) int32 {
	if len(frames) == 0 {
		return 0
	}
	key := make([]byte, 0, 4*len(frames))
	for i := range frames {
		key = binary.LittleEndian.AppendUint32(key, uint32(b.location(frames[i])))
	}
	return interned(b.stacks, string(key), func() int {
		to := b.dictionary.StackTable().AppendEmpty().LocationIndices()
		to.EnsureCapacity(len(frames))
		for at := 0; at < len(key); at += 4 {
			to.Append(int32(binary.LittleEndian.Uint32(key[at:])))
		}
		return b.dictionary.StackTable().Len() - 1
	})
}

// frameTypes are what OpenTelemetry calls kinds of frames (profile.frame.type).
var frameTypes = map[symbolize.Kind]string{symbolize.Python: "cpython", symbolize.Native: "native", symbolize.Kernel: "kernel"}

func (b *Builder) location(f symbolize.Frame) int32 {
	return interned(b.locations, f, func() int {
		to := b.dictionary.LocationTable().AppendEmpty()
		n := b.dictionary.LocationTable().Len() - 1
		line := to.Lines().AppendEmpty()
		line.SetFunctionIndex(b.function(f))
		line.SetLine(int64(f.Line))
		if f.Kind != symbolize.Python && f.Offset > 0 {
			to.SetAddress(uint64(f.Offset))
		}
		if f.Module != "" {
			to.SetMappingIndex(b.mapping(f))
		}
		if kind, ok := frameTypes[f.Kind]; ok {
			to.AttributeIndices().Append(b.attribute(Attribute{"profile.frame.type", kind}))
		}
		return n
	})
}

func (b *Builder) function(f symbolize.Frame) int32 {
	name := f.Function
	if name == "" {
		name = f.Label()
	}
	key := [2]int32{b.text(name), b.text(f.File)}
	return interned(b.functions, key, func() int {
		to := b.dictionary.FunctionTable().AppendEmpty()
		to.SetNameStrindex(key[0])
		to.SetFilenameStrindex(key[1])
		return b.dictionary.FunctionTable().Len() - 1
	})
}

// mapping stands for a module: addresses are the file's own, from 0 on.
func (b *Builder) mapping(f symbolize.Frame) int32 {
	return interned(b.mappings, [2]string{f.Module, f.BuildID}, func() int {
		to := b.dictionary.MappingTable().AppendEmpty()
		to.SetFilenameStrindex(b.text(f.Module))
		to.SetMemoryLimit(1<<63 - 1)
		if f.BuildID != "" {
			to.AttributeIndices().Append(b.attribute(Attribute{buildID(f.BuildID), f.BuildID}))
		}
		return b.dictionary.MappingTable().Len() - 1
	})
}

// buildID is what OpenTelemetry calls an id of a file. Where the linker wrote none, it is
// of a kind of our own.
func buildID(id string) string {
	if strings.HasPrefix(id, "file-") {
		return "ebpfprof.file_id"
	}
	return "process.executable.build_id.gnu"
}
