package replay

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/hot"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
)

const (
	model = "../../../../testdata/replay/models.py"
	steps = 6
)

// tools finds a PyTorch and compiles the library; without either the test is
// skipped, saying so.
func tools(t *testing.T) (python, library string) {
	t.Helper()
	cache := os.Getenv("EBPFPROF_CACHE")
	if cache == "" {
		home, _ := os.UserHomeDir()
		cache = filepath.Join(home, ".cache", "ebpfprof")
	}
	python = filepath.Join(cache, "torch-venv/bin/python")
	if _, err := os.Stat(python); err != nil {
		t.Skip("no PyTorch here: make torch")
	}
	library = filepath.Join(t.TempDir(), "libreplay.so")
	out, err := exec.Command("cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o", library,
		"../../../../testdata/replay/replay.c", "-ldl").CombinedOutput()
	if err != nil {
		t.Skipf("no C compiler for the library: %v: %s", err, out)
	}
	return python, library
}

// run runs the model and returns the hash of what it computed.
func run(t *testing.T, python string, environment []string, arguments ...string) string {
	t.Helper()
	command := exec.Command(python, append([]string{model}, arguments...)...)
	command.Env = append(os.Environ(), environment...)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v: %.500s", arguments, err, complaints.String())
	}
	return strings.TrimSpace(string(out))
}

func logOf(t *testing.T, path string) *Log {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	l, err := ReadLog(file)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLoopsServedFromPlansComputeTheSame: networks shaped like the paper's, trained
// and used: every request that recurs is served from the plan, the results are
// bit-identical, the memory touched is the plan's, and the plan is within 1 % of
// the lower bound.
func TestLoopsServedFromPlansComputeTheSame(t *testing.T) {
	python, library := tools(t)
	models := []string{"alexnet", "googlenet", "resnet50", "inception_resnet", "seq2seq", "gpt"}
	if testing.Short() {
		models = []string{"alexnet"}
	}
	for _, name := range models {
		for _, mode := range []string{"train", "infer"} {
			t.Run(name+"/"+mode, func(t *testing.T) { serve(t, python, library, name, mode) })
		}
	}
}

func serve(t *testing.T, python, library, name, mode string) {
	dir := t.TempDir()
	preload := "LD_PRELOAD=" + library
	logged, planned, report := filepath.Join(dir, "log"), filepath.Join(dir, "plan"), filepath.Join(dir, "report")
	want := run(t, python, []string{preload, "REPLAY_LOG=" + logged}, name, mode, fmt.Sprint(steps))
	l := logOf(t, logged)
	if l.Lives.FreedUnknown != 0 || l.Lives.Reused != 0 || l.Lives.NoSize != 0 {
		t.Errorf("frees and allocations do not balance: %+v", l.Lives.Problems)
	}
	p, err := l.Plan(context.Background(), 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if p.Result.Gap() > 0.01 {
		t.Errorf("the plan is %.2f %% above the lower bound", 100*p.Result.Gap())
	}
	file, err := os.Create(planned)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write(file); err != nil {
		t.Fatal(err)
	}
	file.Close()
	got := run(t, python, []string{preload, "REPLAY_PLAN=" + planned, "REPLAY_REPORT=" + report}, name, mode, fmt.Sprint(steps))
	if got != want {
		t.Errorf("served from the plan it computed %s, else %s", got, want)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var begun, served, elsewhere, peak int64
	if _, err := fmt.Sscanf(string(text), "steps %d served %d elsewhere %d peak %d", &begun, &served, &elsewhere, &peak); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if begun != steps || served == 0 {
		t.Errorf("%d steps begun, %d requests served", begun, served)
	}
	// Blocks are rounded up to 64 bytes in the plan, not in the request.
	if peak > p.Result.Peak || peak <= p.Result.Peak-solve.AlignmentCPU {
		t.Errorf("it used %d bytes, the plan has %d", peak, p.Result.Peak)
	}
	t.Logf("%-18s %-5s %6d requests a step, %5.1f %% of bytes recur; no reuse %9d, pool %9d, plan %9d (%5.1f %% less), bound +%.3f %%, by "+
		"%s; %d of %d served",
		name, mode, len(p.Requests), 100*p.Recurs, p.NoReuse, p.Pool, p.Result.Peak, 100*(1-float64(p.Result.Peak)/float64(p.Pool)),
		100*p.Result.Gap(), p.Result.Solver, served, served+elsewhere)
}

// TestVaryingLengthsArePlannedAgain: sequences of another length each step are
// served elsewhere where they are longer than all before, and planned for then.
func TestVaryingLengthsArePlannedAgain(t *testing.T) {
	python, library := tools(t)
	logged := filepath.Join(t.TempDir(), "log")
	run(t, python, []string{"LD_PRELOAD=" + library, "REPLAY_LOG=" + logged}, "seq2seq_varying", "train", "15")
	l := logOf(t, logged)
	r, err := hot.Replan(context.Background(), l.Lives, l.Steps, solve.AlignmentCPU)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	if r.Replans == 0 || r.Deviations == 0 || r.Served < 2*r.Deviations || r.Replans >= r.Steps-1 {
		t.Errorf("%+v", r)
	}
}
