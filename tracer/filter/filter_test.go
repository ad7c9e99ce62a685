package filter

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Terms{
		"":                                   nil,
		"op":                                 {Group: {"op"}},
		"op, memory":                         {Group: {"op", "memory"}},
		"layer=op,autograd":                  {Layer: {"op", "autograd"}},
		"op,symbol=aten::*mm,aten::mul":      {Group: {"op"}, Symbol: {"aten::*mm", "aten::mul"}},
		"rank=0,device=0,1":                  {Rank: {"0"}, Device: {"0", "1"}},
		"category=launch,group=cuda,layer=*": {Category: {"launch"}, Group: {"cuda"}, Layer: {"*"}},
	} {
		got, err := Parse(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Parse(%q) = %v, %v; want %v", text, got, err, want)
		}
		if again, err := Parse(got.String()); err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("%q is written as %q, and read as %v, %v", text, got, again, err)
		}
	}
	for text, want := range map[string]string{
		"color=red":     `"color" is nothing to filter by: choose from group, layer, category, symbol, device, rank`,
		"layer=":        "empty pattern",
		"op,,memory":    "empty pattern",
		"symbol=[a":     "a bracket is not closed",
		"layer=opp":     "layer=opp matches nothing: choose from ",
		"category=nope": "category=nope matches nothing: choose from ",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) gives %v, want %q", text, err, want)
		}
	}
	if _, err := Parse("layer=opp"); !errors.Is(err, ErrNoMatch) {
		t.Errorf("%v is no ErrNoMatch", err)
	}
}

func parsed(t *testing.T, probe, exclude string) *Filter {
	t.Helper()
	p, err := Parse(probe)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Parse(exclude)
	if err != nil {
		t.Fatal(err)
	}
	return &Filter{Probe: p, Exclude: e}
}

func names(groups []spec.Group) map[string]bool {
	found := map[string]bool{}
	for _, g := range groups {
		found[g.Name] = true
	}
	return found
}

// TestReadsAndWritesAreLeftOutByTheirGroupAndLayer, and by whoever asks for something else.
func TestReadsAndWritesAreLeftOutByTheirGroupAndLayer(t *testing.T) {
	for _, c := range []struct {
		probe, exclude string
		measured       bool
	}{
		{"", "", true}, {"io", "", true}, {"op,io", "", true}, {"layer=io,op", "", true}, {"", "memory,symbol=read", true},
		{"op", "", false}, {"layer=op", "", false}, {"symbol=aten::*", "", false}, {"category=launch", "", false},
		{"", "io", false}, {"", "layer=io", false}, {"io", "io", false},
	} {
		f, err := New(c.probe, c.exclude)
		if err != nil {
			t.Errorf("--probe %q --exclude %q: %v", c.probe, c.exclude, err)
			continue
		}
		if f.IO() != c.measured {
			t.Errorf("--probe %q --exclude %q: measured is %v", c.probe, c.exclude, !c.measured)
		}
	}
}

func TestGroupsThatAreLeft(t *testing.T) {
	all := catalog.Groups()
	if got := (&Filter{}).Groups(all); len(got) != len(all) {
		t.Errorf("without terms %v are left", slices.Sorted(maps.Keys(names(got))))
	}
	if got := names(parsed(t, "cuda-code", "").Groups(all)); !got["cuda-code"] {
		t.Error("a group that serves others is not left where it was asked for")
	}
	operators := names(parsed(t, "layer=op", "").Groups(all))
	if !operators["op"] || operators["cuda"] || operators["scope"] {
		t.Errorf("of layer op: %v", operators)
	}
	launches := names(parsed(t, "category=launch", "").Groups(all))
	if !launches["cuda"] || !launches["cuda-code"] || launches["op"] {
		t.Errorf("launches, and what names their kernels: %v", launches)
	}
	rest := names(parsed(t, "", "op,autograd,group=cuda*").Groups(all))
	if rest["op"] || rest["cuda-code"] || !rest["hip"] || !rest["scope"] {
		t.Errorf("without operators and CUDA: %v", rest)
	}
}

func TestCalls(t *testing.T) {
	operator := &spec.Function{Layer: "op", Action: spec.Span}
	scope := &spec.Function{Layer: "scope", Action: spec.ScopeBegin}
	sync := &spec.Function{Layer: "runtime", Category: "sync", Action: spec.Span, Effect: spec.WaitsStream}
	name := &spec.Function{Layer: "runtime", Category: "module", Action: spec.Span, Effect: spec.NamesKernel}
	for _, c := range []struct {
		probe, exclude string
		function       *spec.Function
		symbol         string
		want           bool
	}{
		{"", "", operator, "aten::mm", true},
		{"symbol=aten::*mm", "", operator, "aten::addmm", true},
		{"symbol=aten::*mm", "", operator, "aten::mul", false},
		{"", "symbol=aten::*mm", operator, "aten::addmm", false},
		{"layer=op,symbol=aten::*", "symbol=aten::view", operator, "aten::view", false},
		{"symbol=aten::*", "", scope, "_ZN5enter", false},
		{"", "symbol=*enter*", scope, "_ZN5enter", true}, // else its end would be alone
		{"", "category=sync", sync, "cudaDeviceSynchronize", false},
		{"layer=op", "", sync, "cudaDeviceSynchronize", false},
		{"category=launch", "symbol=cu*", name, "cuModuleGetFunction", true}, // launches would lack names
		{"symbol=operator*", "", operator, "operator/", true},
	} {
		if got := parsed(t, c.probe, c.exclude).Call(c.function, c.symbol); got != c.want {
			t.Errorf("--probe %q --exclude %q: %s: %v", c.probe, c.exclude, c.symbol, got)
		}
	}
}

func TestRowsOfDevicesAndRanks(t *testing.T) {
	one := int32(1)
	f := parsed(t, "rank=0,2", "device=1")
	if !f.ByRow() || f.Number(Rank, &one) || f.Number(Device, &one) || !f.Number(Rank, nil) || !f.Number(Device, nil) {
		t.Error("rows of rank 1 and device 1 are left out, those without one are not")
	}
	if (&Filter{}).ByRow() || !(&Filter{}).Number(Rank, &one) {
		t.Error("the zero filter leaves nothing out")
	}
}
