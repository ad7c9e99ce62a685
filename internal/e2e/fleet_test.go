package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/e2e/harness"
)

// fleetAnswer is what the test reads of `fleet report --json`.
type fleetAnswer struct {
	Verdict  string `json:"verdict"`
	Workers  []any  `json:"workers"`
	Findings []struct {
		Kind     string                       `json:"kind"`
		Class    string                       `json:"class"`
		Function string                       `json:"function"`
		Workers  []struct{ Rank, PID int32 }  `json:"workers"`
		Cause    struct{ Class, Name string } `json:"cause"`
	} `json:"findings"`
	WhatIf *struct {
		S       float64 `json:"S"`
		Workers []struct {
			Rank int     `json:"rank"`
			S    float64 `json:"S_w"`
		} `json:"workers"`
	} `json:"what_if"`
}

func fleetReport(t *testing.T, store string) (answer fleetAnswer) {
	t.Helper()
	out, err := exec.Command(harness.Binary, "fleet", "report", store, "--json").Output()
	if err != nil {
		t.Fatalf("fleet report: %v", err)
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// names says whether the first special finding is of the rank and the function.
func (a fleetAnswer) names(rank int32, function string) bool {
	for _, f := range a.Findings {
		if f.Kind == "special" {
			return f.Workers[0].Rank == rank && strings.Contains(f.Function, function)
		}
	}
	return false
}

var faults = []struct{ fault, function string }{
	{"loader", "__getitem__"}, {"python", "tokenize"}, {"gc", "garbage collection"},
}

// Recordings of real ranks, made patterns and compared: the planted rank and function
// come first, and the replay finds the same worker.
func TestTheSlowRankIsNamedFromRecordings(t *testing.T) {
	harness.PyPI.Need(t)
	for _, c := range faults {
		t.Run(c.fault, func(t *testing.T) {
			job := harness.Start(t, harness.PyPI.Job("straggler.py", "--fault", c.fault, "--after", "0", "--seconds", "60")...)
			pids := stragglerPIDs(t, job)
			job.Line(t, "running")
			tracing := harness.Attach(t, []string{"--duration", "8s"}, pids...)
			if code, err := tracing.Wait(); err != nil || code != 0 {
				t.Fatalf("attach: %d, %v\n%s", code, err, tracing.Transcript())
			}
			store := filepath.Join(t.TempDir(), "store")
			if out, err := exec.Command(harness.Binary, "fleet", "upload", "--store", store, tracing.Dataset).CombinedOutput(); err != nil {
				t.Fatalf("fleet upload: %v\n%s", err, out)
			}
			a := fleetReport(t, store)
			if !a.names(1, c.function) || len(a.Workers) != 3 {
				t.Errorf("%s\n%+v", a.Verdict, a.Findings)
			}
			if a.WhatIf == nil || a.WhatIf.S < 1.03 || a.WhatIf.Workers[0].Rank != 1 {
				t.Errorf("what if: %+v", a.WhatIf)
			}
		})
	}
}

func stragglerPIDs(t *testing.T, job *harness.Command) (pids []int) {
	t.Helper()
	job.Line(t, "started ")
	for _, field := range strings.Fields(job.Lines()[0])[1:] {
		var pid int
		if _, err := fmt.Sscan(field, &pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// The agent finds the job, notices by itself that it became slow, records a window and
// sends patterns that name the rank; nobody told it anything.
func TestTheAgentNoticesASlowRankByItself(t *testing.T) {
	harness.PyPI.Need(t)
	dir := t.TempDir()
	binary := filepath.Join(dir, "ebpfprof-agent")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/ebpfprof-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	store, name := filepath.Join(dir, "store"), fmt.Sprintf("straggler-%d", os.Getpid())
	config := filepath.Join(dir, "agent.yaml")
	text := fmt.Sprintf("store: %s\nspool: %s\nlisten: off\nonly: [%s]\nevery: 1s\nsettle: 3s\nwindow: 6s\nflush: 10s\ncooldown: 20s\n",
		store, filepath.Join(dir, "spool"), name)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := harness.Start(t, binary, "--config", config)
	job := harness.Start(t, harness.PyPI.Job("straggler.py", "--fault", "loader", "--after", "400", "--seconds", "150", "--job", name)...)
	job.Line(t, "started ")
	agent.Until(t, "a window", func(_ []string, errs string) bool { return strings.Contains(errs, "state=window reason=slow") })
	found := false
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && !found; time.Sleep(2 * time.Second) {
		if _, err := os.Stat(filepath.Join(store, "v1", "pattern")); err == nil {
			found = fleetReport(t, store).names(1, "__getitem__")
		}
	}
	if !found {
		t.Errorf("the rank is not named\n%+v\n%s", fleetReport(t, store), agent.Transcript())
	}
	agent.Until(t, "the window's end", func(_ []string, errs string) bool { return strings.Contains(errs, "windows=1") })
	if raw, _ := filepath.Glob(filepath.Join(dir, "spool", "*", "span", "*.parquet")); len(raw) == 0 {
		t.Error("the window's raw events are not in the spool")
	}
	// SIGTERM ends the agent, its worker and every probe; the job goes on.
	if err := agent.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, err := agent.Wait(); err != nil || code != 0 {
		t.Errorf("the agent ended with %d, %v\n%s", code, err, agent.Transcript())
	}
	if err := job.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("the job did not go on: %v", err)
	}
	if code, err := job.Wait(); err != nil || code != 0 {
		t.Errorf("the job ended with %d, %v", code, err)
	}
}
