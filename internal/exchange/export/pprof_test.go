package export

import (
	"bytes"
	"testing"

	pprof "github.com/google/pprof/profile"

	"github.com/ebpfprof/ebpfprof/internal/model/profile"
	"github.com/ebpfprof/ebpfprof/symbolize"
)

func py(function string) symbolize.Frame {
	return symbolize.Frame{Kind: symbolize.Python, Function: function, File: "/job/train.py", Line: 3, Offset: -1}
}

func native(function string) symbolize.Frame {
	return symbolize.Frame{Kind: symbolize.Native, Function: function, Module: "libtorch_cpu.so", Offset: 64}
}

// training is 10 s in four stacks, written root first.
func training() profile.Profile {
	kept := profile.NewFrames()
	stack := func(seconds int64, rootFirst ...symbolize.Frame) profile.Stack {
		frames := make([]*profile.Frame, len(rootFirst))
		for i, f := range rootFirst {
			frames[len(frames)-1-i] = kept.Of(f)
		}
		return profile.Stack{Frames: frames, WeightNS: seconds * 1e9, Samples: seconds * 100}
	}
	cut := stack(1, native("lost"))
	cut.Cut = "native_no_table"
	return profile.Profile{
		stack(5, native("_start"), py("<module>"), native("a"), native("b"), native("c"), native("d"), native("gemm")),
		stack(2, native("_start"), py("<module>"), py("loss"), native("gemm")),
		stack(2, native("_start"), py("<module>"), py("loss"), py("loss")),
		cut,
	}
}

func TestPprofReadsTheProfileBack(t *testing.T) {
	p := training()
	p[0].Group = "pid 7"
	var b bytes.Buffer
	if err := WritePprof(&b, p, PprofCPU); err != nil {
		t.Fatal(err)
	}
	got, err := pprof.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Sample) != len(p) || got.DefaultSampleType != "cpu" {
		t.Fatalf("%d samples of %s", len(got.Sample), got.DefaultSampleType)
	}
	for i, s := range got.Sample {
		if s.Value[0] != p[i].Samples || s.Value[1] != p[i].WeightNS || len(s.Location) != len(p[i].Frames) {
			t.Errorf("%+v, want %+v", s, p[i])
			continue
		}
		for j, l := range s.Location {
			f := p[i].Frames[j]
			if l.Line[0].Function.Name != f.Function || l.Line[0].Line != int64(f.Line) || f.Module != "" && l.Mapping.File != f.Module {
				t.Errorf("%+v, want %+v", l.Line[0].Function, f)
			}
		}
	}
	if got.Sample[0].Label["group"][0] != "pid 7" || got.Sample[3].Label["cut"][0] != "native_no_table" {
		t.Errorf("%v, %v", got.Sample[0].Label, got.Sample[3].Label)
	}
	if len(got.Function) != 9 {
		t.Errorf("%d functions", len(got.Function))
	}
}
