package bpf

import (
	"errors"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/cilium/ebpf"
)

// verifierBudget is how many instructions the verifier may look at, by program:
// some twice of what Linux 6.18 needs, because other versions prune differently.
// The kernel's limit is a million; 100,000 is what no program may need on any
// kernel (tracer/loads_test.go, which the kernel matrix runs).
var verifierBudget = map[string]int{
	"call_entry": 18_000, "call_entry_line": 60_000, "call_entry_stack": 100_000, "call_exit": 8_000, "call_return": 8_000,
	"call_learn": 1_000, "link_map": 1_000, "guarded_call": 100, "take_activities": 500,
	"process_fork": 5_000, "process_exec": 9_000, "process_exit": 4_000, "process_out_of_memory": 300, "process_free": 300,
	"python_at_probe": 8_000, "python_at_tick": 8_000, "python_at_syscall": 8_000,
	"sample_tick": 70_000, "sample_switch": 70_000, "sample_syscall_end": 70_000, "sample_waking": 4_000, "io_begin": 6_000, "io_fault": 6_000,
	"native_at_probe": 40_000, "native_at_tick": 40_000, "native_at_return": 1_000,
}

var processedInstructions = regexp.MustCompile(`processed (\d+) insns`)

func TestProgramsStayWithinTheVerifierBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("kernel: not in -short")
	}
	if os.Geteuid() != 0 {
		t.Skip("kernel: needs root")
	}
	for _, load := range []func() (*ebpf.CollectionSpec, error){LoadCall, LoadLife, LoadPythonWalk, LoadNativeWalk, LoadSample, LoadActivities,
		LoadAbility} {
		spec, err := load()
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"take_io", "take_paths"} {
			if taken, ok := spec.Variables[part]; ok {
				if err := taken.Set(uint32(1)); err != nil {
					t.Fatal(err)
				}
			}
		}
		c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}})
		var refused *ebpf.VerifierError
		if errors.As(err, &refused) {
			t.Fatalf("%+v", refused)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for name, p := range c.Programs {
			found := processedInstructions.FindStringSubmatch(p.VerifierLog)
			if found == nil {
				t.Fatalf("%s: the verifier's log says no count: %s", name, p.VerifierLog)
			}
			processed, _ := strconv.Atoi(found[1])
			budget, known := verifierBudget[name]
			t.Logf("%s: %d instructions of %d", name, processed, budget)
			if !known || processed > budget {
				t.Errorf("%s: the verifier looks at %d instructions, the budget is %d", name, processed, budget)
			}
		}
	}
}
