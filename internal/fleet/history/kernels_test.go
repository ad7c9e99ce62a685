package history

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/verdict"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// launches is a job of one rank: 60 minutes of steps of 100 ms, the last ten of 120. In
// the minutes of recordings its device ran gemm for so many ms of a step, at the least and
// at the most, and relu for 5 ms.
func launches(t *testing.T, recordings map[int64][2]float64) *dataset.DB {
	t.Helper()
	root := t.TempDir()
	s, err := store.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	b := store.Batch{Session: "s", Job: "llama", Host: "a"}
	for n := range int64(60) {
		period, at := 100+0.1*float64(n%3), begin+n*minute
		if n >= 50 {
			period += 20
		}
		for k := range int64(100) {
			b.Steps = append(b.Steps, pattern.Step{PID: 100, Number: n*100 + k, BeginNS: at + k*minute/100, PeriodNS: int64(period * 1e6),
				LoadNS: -1})
		}
		ms, is := recordings[n]
		if !is {
			continue
		}
		p := pattern.Pattern{Host: "a", PID: 100, BeginNS: at, EndNS: at + 20e9, ObservedNS: 20e9, Coverage: 1, Basis: pattern.Device,
			Resource: "device", Class: pattern.Kernel}
		gemm, relu := p, p
		gemm.Function, gemm.Name, gemm.Beta, gemm.BetaLo, gemm.BetaHi = 1, "gemm", ms[0]/period, ms[0]/period, ms[1]/period
		relu.Function, relu.Name, relu.Beta, relu.BetaLo, relu.BetaHi = 2, "relu", 5/period, 5/period, 5/period
		b.Patterns = append(b.Patterns, gemm, relu)
	}
	if _, err := store.Send(t.Context(), s, b); err != nil {
		t.Fatal(err)
	}
	db, err := dataset.Open(filepath.Join(root, store.Version))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// The best minutes of the job that launches makes are its first ten.
func TestTheKernelThatTakesLongerIsNamed(t *testing.T) {
	for _, c := range []struct {
		name        string
		recordings  map[int64][2]float64
		significant bool
		note        string
	}{
		{"bounds that are apart", map[int64][2]float64{1: {20, 30}, 5: {21, 31}, 52: {48, 60}, 57: {49, 62}}, true, ""},
		{"bounds that meet", map[int64][2]float64{1: {20, 50}, 5: {21, 51}, 52: {40, 60}, 57: {41, 62}}, false, ""},
		{"recorded before now, but not then", map[int64][2]float64{20: {20, 30}, 30: {21, 31}, 52: {48, 60}, 57: {49, 62}}, true,
			"all 2 minutes before now"},
		{"a single one", map[int64][2]float64{1: {20, 30}, 5: {21, 31}, 52: {48, 60}}, false, "a single minute"},
		{"none before", map[int64][2]float64{52: {48, 60}, 57: {49, 62}}, false, "which kernel changed is not told"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Compare(t.Context(), launches(t, c.recordings), tenMinutes)
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict != verdict.Regression {
				t.Fatalf("%s", r.Sentence)
			}
			told := strings.Contains(r.Sentence, "devices take 48.5 ms of it for gemm at the least, and took 30.5 ms at the most")
			marked := slices.ContainsFunc(r.Kernels, func(k Kernel) bool { return k.Significant && k.Name == "gemm" })
			if told != c.significant || marked != c.significant {
				t.Errorf("told %v, marked %v: %s\n%+v", told, marked, r.Sentence, r.Kernels)
			}
			for _, k := range r.Kernels {
				if k.Name == "relu" && (k.Significant || k.growth() != 0 && c.note != "a single minute") {
					t.Errorf("%+v", k)
				}
			}
			if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, c.note) || c.note == "" && strings.Contains(notes, "launches") {
				t.Errorf("notes %q", notes)
			}
			var text bytes.Buffer
			if err := r.WriteText(&text, 10); err != nil {
				t.Fatal(err)
			}
			if table := strings.Contains(text.String(), "gemm"); table != (len(r.Kernels) > 0) {
				t.Errorf("%s", text.String())
			}
			if c.significant {
				t.Log(text.String())
			}
		})
	}
}
