package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/replay"
	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

const memoryModels = "../../../testdata/replay/models.py"

// TestMemoryAnswersAreThoseOfAnIndependentCount: what `memory` says of a recorded
// training loop is what a library counted that stood in front of the C library's
// allocator in another run: allocations, frees, and the peak to the byte; nothing
// is freed that was never allocated; and the plan of what recurs is the lower bound.
func TestMemoryAnswersAreThoseOfAnIndependentCount(t *testing.T) {
	harness.PyPI.Beside(t)
	library := filepath.Join(t.TempDir(), "libreplay.so")
	if out, err := exec.Command("cc", "-std=gnu11", "-O2", "-fPIC", "-shared", "-o", library, "../../../testdata/replay/replay.c",
		"-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, model := range []string{"alexnet", "gpt"} {
		counted := countedRun(t, library, model)
		r := harness.Record(t, []string{"--budget", "off", "--quiet"}, harness.PyPI.Python, memoryModels, model, "train", "6")
		var answer struct {
			Arenas []struct {
				Peak         int64 `json:"peak_bytes"`
				Allocations  int64
				Frees        int64
				FreedUnknown int64 `json:"frees_of_unknown_blocks"`
				Partial      bool
			}
		}
		harness.Ask(t, &answer, "memory", r.Dataset, "--json")
		a, l := answer.Arenas[0], counted.Lives
		if a.Peak != l.Peak || a.Allocations != l.Allocations || a.Frees != l.Frees || a.FreedUnknown != 0 || a.Partial {
			t.Errorf("%s: %+v; counted: peak %d, %d allocations, %d frees", model, a, l.Peak, l.Allocations, l.Frees)
		}
		var plan struct {
			Scope  string
			Plan   int64   `json:"plan_bytes"`
			Bound  int64   `json:"lower_bound_bytes"`
			Recurs float64 `json:"recurring_share"`
		}
		harness.Ask(t, &plan, "memory", "plan", r.Dataset, "--json")
		if plan.Scope != "step" || plan.Plan > plan.Bound+plan.Bound/100 || plan.Recurs < 0.9 {
			t.Errorf("%s: plan %+v", model, plan)
		}
		t.Logf("%s: peak %d, %d allocations; plan %d, bound %d", model, a.Peak, a.Allocations, plan.Plan, plan.Bound)
	}
}

func countedRun(t *testing.T, library, model string) *replay.Log {
	t.Helper()
	path := filepath.Join(t.TempDir(), model)
	command := exec.Command(harness.PyPI.Python, memoryModels, model, "train", "6")
	command.Env = append(os.Environ(), "LD_PRELOAD="+library, "REPLAY_LOG="+path)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	l, err := replay.ReadLog(file)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
