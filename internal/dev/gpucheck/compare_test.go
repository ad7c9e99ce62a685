package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/features"
)

func TestEveryDifferenceIsSaid(t *testing.T) {
	same := func() *result {
		return &result{
			Told: &told{Launches: map[string]int64{"gemm": 3, "add": 2}, GraphLaunches: 4, Collectives: map[string]int64{"ncclAllReduce": 5}},
			Recorded: &seen{Launches: map[string]int64{"gemm": 3, "add": 2}, GraphLaunches: 4, Collectives: map[string]int64{"ncclAllReduce": 5},
				Lost: map[string]int64{}},
		}
	}
	for _, c := range []struct {
		name   string
		change func(*result)
		agrees bool
		named  int64
	}{
		{"the same", func(*result) {}, true, 5},
		{"one launch less", func(r *result) { r.Recorded.Launches["gemm"] = 2 }, false, 4},
		{"one launch more", func(r *result) { r.Recorded.Launches["other"] = 1 }, false, 5},
		{"another name", func(r *result) { r.Recorded.Launches = map[string]int64{"gemm": 3, "plus": 2} }, true, 3},
		{"one graph less", func(r *result) { r.Recorded.GraphLaunches = 3 }, false, 5},
		{"one collective more", func(r *result) { r.Recorded.Collectives["ncclAllReduce"] = 6 }, false, 5},
		{"something was lost", func(r *result) { r.Recorded.Lost["ring_full"] = 1 }, false, 5},
		{"no work at all", func(r *result) { r.Told, r.Recorded = &told{}, &seen{} }, false, 0},
	} {
		r := same()
		c.change(r)
		r.compare()
		if r.Agrees != c.agrees || r.NamesAgree != c.named || r.Agrees != (len(r.Differs) == 0) {
			t.Errorf("%s: agrees %v, %d by name, %v", c.name, r.Agrees, r.NamesAgree, r.Differs)
		}
	}
}

func TestAReportOfSkippedChecksAgreesOnNothing(t *testing.T) {
	r := newReport(&machine{})
	r.Checks = []*result{{Name: "training", Skipped: "no Python"}}
	if err := r.write(filepath.Join(t.TempDir(), "report.json")); err != nil || r.Agrees {
		t.Errorf("agrees: %v, %v", r.Agrees, err)
	}
}

func TestExitCodesSayWhatIsMissing(t *testing.T) {
	for err, want := range map[error]int{
		errDisagrees: exitDisagrees, errNoGPU: exitNoGPU, errUsage: exitUsage,
		features.ErrNotPermitted: exitRefused, features.ErrUnsupported: exitRefused, errors.New("anything"): exitDisagrees,
	} {
		if got := exitCode(fmt.Errorf("doing it: %w", err)); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
	if err := run(options{stub: "build", output: reportPath}); !errors.Is(err, errUsage) {
		t.Errorf("a stub's report at %s: %v, want %v", reportPath, err, errUsage)
	}
}
