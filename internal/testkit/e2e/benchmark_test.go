package e2e

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// timed is what a job says of itself: each step's length and what of it its loader took, in seconds.
type timed struct {
	Steps  [][2]float64 `json:"steps"`
	Epochs []float64    `json:"epochs"`
}

// benchmarked is what bench --json says.
type benchmarked struct {
	Benchmarks []struct {
		Runs []struct {
			Recording string `json:"recording"`
		} `json:"runs"`
		Numbers []struct {
			Name  string   `json:"name"`
			Value *float64 `json:"value"`
			Of    int      `json:"of"`
			Why   string   `json:"why"`
		} `json:"numbers"`
	} `json:"benchmarks"`
}

// TestABenchmarkAgreesWithTheJobsOwnTimers: the job's clock and ours time the same steps of the same run.
func TestABenchmarkAgreesWithTheJobsOwnTimers(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, torch harness.Torch) {
		store := filepath.Join(t.TempDir(), "store")
		var found benchmarked
		harness.Ask(t, &found, append([]string{"bench", "--json", "--quiet", "--store", store, "--"}, torch.Job("timed_steps.py", "5")...)...)
		b := found.Benchmarks[0]
		values, of, reasons := map[string]float64{}, map[string]int{}, map[string]string{}
		for _, n := range b.Numbers {
			reasons[n.Name] = n.Why
			if n.Value != nil {
				values[n.Name], of[n.Name] = *n.Value, n.Of
			}
		}
		own := ownTimers(t, filepath.Join(store, filepath.Dir(b.Runs[0].Recording), "stdout"))
		settled := of["step_time"] // the last ones: what is before is warm-up
		if settled < 10 || settled > len(own.Steps) {
			t.Fatalf("%d settled steps of %d: %+v", settled, len(own.Steps), b.Numbers)
		}
		step, load := 0.0, 0.0
		for _, s := range own.Steps[len(own.Steps)-settled:] {
			step += 1000 * s[0] / float64(settled)
		}
		if off := math.Abs(values["step_time"]-step) / step; off > 0.02 {
			t.Errorf("a step takes %.4f ms, by the job's own timer %.4f ms: %.1f %% off", values["step_time"], step, 100*off)
		}
		if _, ok := values["loss"]; !ok {
			t.Error("the loss that the job prints is not found")
		}
		if torch.Name == harness.Debian.Name { // its loader leaves no scopes: nothing tells where an epoch ends
			if why := reasons["epoch_time"]; !strings.Contains(why, "--steps-per-epoch") {
				t.Errorf("epoch_time: %v, %q", values["epoch_time"], why)
			}
			// What samples tell depends on how soon stacks could be walked: a busy machine has none to compare.
			if why := reasons["io_exposed"]; !strings.Contains(why, "loader") {
				t.Errorf("io_exposed: %v, %q", values["io_exposed"], why)
			}
			return
		}
		loads := of["io_exposed"] // the loader's calls may have been seen later than the steps
		if loads < 10 || loads > settled {
			t.Fatalf("%d loads in %d steps", loads, settled)
		}
		for _, s := range own.Steps[len(own.Steps)-loads:] {
			load += 1000 * s[1] / float64(loads)
		}
		if off := math.Abs(values["io_exposed"]-load) / step; off > 0.05 {
			t.Errorf("loading takes %.4f ms of a step, by the job's own timer %.4f ms: %.1f %% of a step off", values["io_exposed"], load, 100*off)
		}
		whole := of["epoch_time"] // the first is one only if its first steps were seen
		if whole < 2 || whole > len(own.Epochs) {
			t.Fatalf("%d epochs of %d", whole, len(own.Epochs))
		}
		epoch := 0.0
		for _, e := range own.Epochs[len(own.Epochs)-whole:] {
			epoch += e / float64(whole)
		}
		if off := math.Abs(values["epoch_time"]-epoch) / epoch; off > 0.02 {
			t.Errorf("%d epochs of %.4f s, by the job's own timer %.4f s", whole, values["epoch_time"], epoch)
		}
		if values["batch"] != 8 || math.Abs(values["throughput"]-8000/values["step_time"]) > 1e-6*values["throughput"] {
			t.Errorf("batch %v, throughput %v", values["batch"], values["throughput"])
		}
	})
}

func ownTimers(t *testing.T, name string) (own timed) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, `{"steps"`) {
			if err := json.Unmarshal([]byte(line), &own); err != nil {
				t.Fatal(err)
			}
			return own
		}
	}
	t.Fatalf("the job printed no timers:\n%s", text)
	return own
}
