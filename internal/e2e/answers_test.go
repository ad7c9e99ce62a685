package e2e

import (
	"bytes"
	"encoding/json"
	"math"
	"os/exec"
	"path/filepath"
	"testing"
)

// answer runs a command on the dataset and reads its JSON.
func (r *recording) answer(t *testing.T, command string, into any) {
	t.Helper()
	c := exec.Command(ebpfprof, command, r.dataset, "--json")
	var complaints bytes.Buffer
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, complaints.String())
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// The count is the job's own, and so is the mean time between training steps, to
// 2 %, whatever the machine did meanwhile: both saw it.
func TestStepsOfLoopsAreTheJobsOwn(t *testing.T) {
	for _, loop := range []string{"plain", "accumulate", "evaluate", "inference"} {
		t.Run(loop, func(t *testing.T) {
			pypiTorch.beside(t, counting)
			var flags []string
			if loop == "evaluate" || loop == "inference" {
				// Within a budget the loader's scopes may go into slices, too, and a batch
				// that nothing is learnt from is passed by with them.
				flags = []string{"--budget", "off"}
			}
			r := mustRecord(t, flags, pypiTorch.job("loops.py", "--loop", loop)...)
			var answer struct {
				Processes []struct {
					List []struct {
						Kind    string `json:"kind"`
						BeginNS int64  `json:"begin_ns"`
					} `json:"list"`
				} `json:"processes"`
			}
			r.answer(t, "steps", &answer)
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
			if len(train) != r.truth.Train || evaluate != r.truth.Evaluate {
				t.Errorf("%d training and %d evaluation steps, the job made %d and %d", len(train), evaluate, r.truth.Train, r.truth.Evaluate)
			}
			if r.truth.Train < 2 || len(train) != r.truth.Train {
				return
			}
			var own int64
			for _, p := range r.truth.PeriodsNS {
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
			pypiTorch.beside(t, sliced)
			r := mustRecord(t, nil, pypiTorch.job("planted.py", "--problem", problem)...)
			var found []struct {
				Rule     string   `json:"rule"`
				File     *string  `json:"file"`
				Line     *int     `json:"line"`
				Headroom *float64 `json:"headroom_ms"`
			}
			r.answer(t, "findings", &found)
			if len(found) == 0 || found[0].Rule != rule {
				t.Fatalf("want %s first, got %+v", rule, found)
			}
			f := found[0]
			if f.File == nil || filepath.Base(*f.File) != "planted.py" || f.Line == nil || *f.Line != r.truth.Line {
				t.Errorf("not at line %d: %+v", r.truth.Line, f)
			}
			if f.Headroom == nil {
				t.Error("no headroom")
			}
		})
	}
}
