package e2e

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// The count is the job's own, and so is the mean time between training steps, to
// 2 %, whatever the machine did meanwhile: both saw it.
func TestStepsOfLoopsAreTheJobsOwn(t *testing.T) {
	for _, loop := range []string{"plain", "accumulate", "evaluate", "inference"} {
		t.Run(loop, func(t *testing.T) {
			harness.PyPI.Need(t) // within a budget: what else the machine does makes its slices
			var flags []string
			if loop != "plain" {
				// Within a budget the scopes may go into slices, too: then a batch that nothing
				// is learnt from is passed by with them, and where a step of several batches
				// ends is told by nothing.
				flags = []string{"--budget", "off"}
			}
			r := harness.Record(t, flags, harness.PyPI.Job("loops.py", "--loop", loop)...)
			var answer struct {
				Processes []struct {
					List []struct {
						Kind    string `json:"kind"`
						BeginNS int64  `json:"begin_ns"`
					} `json:"list"`
				} `json:"processes"`
			}
			harness.Ask(t, &answer, "steps", r.Dataset, "--json")
			if len(answer.Processes) != 1 {
				t.Fatalf("%d processes make steps", len(answer.Processes))
			}
			var train []int64
			evaluate := 0
			for _, s := range answer.Processes[0].List {
				switch s.Kind {
				case "train", "warmup":
					train = append(train, s.BeginNS)
				case "evaluate":
					evaluate++
				}
			}
			if len(train) != r.Truth.Train || evaluate != r.Truth.Evaluate {
				t.Errorf("%d training and %d evaluation steps, the job made %d and %d", len(train), evaluate, r.Truth.Train, r.Truth.Evaluate)
			}
			if r.Truth.Train < 2 || len(train) != r.Truth.Train {
				return
			}
			var own int64
			for _, p := range r.Truth.PeriodsNS {
				own += p
			}
			ours := train[len(train)-1] - train[0]
			if off := math.Abs(float64(ours)/float64(own) - 1); off > 0.02 {
				t.Errorf("%d ns from the first to the last step, the job says %d", ours, own)
			}
		})
	}
}

// What is planted is the finding with the most headroom, at its line.
func TestPlantedProblemsAreFoundAtTheirLine(t *testing.T) {
	for problem, rule := range map[string]string{"hook": "blocked", "loader": "loader_starved"} {
		t.Run(problem, func(t *testing.T) {
			harness.PyPI.Need(t) // as above
			r := harness.Record(t, nil, harness.PyPI.Job("planted.py", "--problem", problem)...)
			var found []struct {
				Rule     string   `json:"rule"`
				File     *string  `json:"file"`
				Line     *int     `json:"line"`
				Headroom *float64 `json:"headroom_ms"`
			}
			harness.Ask(t, &found, "findings", r.Dataset, "--json")
			first := 0
			for first < len(found) && found[first].Rule == "cpu_contention" { // of the machine, whatever is planted
				first++
			}
			if first == len(found) || found[first].Rule != rule {
				t.Fatalf("want %s first, got %+v", rule, found)
			}
			f := found[first]
			if f.File == nil || filepath.Base(*f.File) != "planted.py" || f.Line == nil || *f.Line != r.Truth.Line {
				t.Errorf("not at line %d: %+v", r.Truth.Line, f)
			}
			if f.Headroom == nil {
				t.Error("no headroom")
			}
		})
	}
}
