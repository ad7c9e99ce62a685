package profile

import (
	"bytes"
	"testing"

	"github.com/google/pprof/profile"
)

func TestPprofReadsTheProfileBack(t *testing.T) {
	p := training()
	p[0].Group = "pid 7"
	var b bytes.Buffer
	if err := p.WritePprof(&b, false); err != nil {
		t.Fatal(err)
	}
	got, err := profile.Parse(&b)
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
