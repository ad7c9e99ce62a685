package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// Two agents, as of two hosts, watch the ranks of one job, one of which blocks before a
// collective that the others wait in. Each says by itself what it knows: the one that others
// wait here, the other where its rank stands. The store has both, which together name the
// rank, and the dumps that both have written are what PyTorch's own analyser names it by.
func agentsNameTheRankThatBlocks(t *testing.T) {
	const victim = 1
	dir := t.TempDir()
	binary := buildAgent(t, dir)
	store, key, name := filepath.Join(dir, "store"), filepath.Join(dir, "key"), fmt.Sprintf("blocked-%d", os.Getpid())
	if err := os.WriteFile(key, []byte("0123456789abcdef0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Steps of a few milliseconds with a dozen collectives have these in slices; a loop
	// that somebody trains a model in takes longer.
	config := fmt.Sprintf("store: %s\nkey_file: %s\nonly: [%s]\nslower_than: 1000\nbudget: 5%%\n", store, key, name)
	one := startAgent(t, binary, dir, "node-a", config+"ranks: [0, 2]\n")
	two := startAgent(t, binary, dir, "node-b", config+"ranks: [1]\n")
	job := harness.Start(t, harness.PyPI.Job("straggler.py", "--fault", "teardown", "--after", "1000000000", "--seconds", "1000", "--length",
		"0.05", "--job", name)...)
	pids := stragglerPIDs(t, job)
	job.Line(t, "running")
	wait(t, "steps", func() bool { return one.steps(t) >= 200 && two.steps(t) >= 100 }, one, two)
	if err := syscall.Kill(pids[victim], syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	blocked := "msg=\"job is blocked\" job=" + name
	for _, a := range []agent{one, two} {
		a.says(t, blocked)
	}
	for a, want := range map[*agent]string{&one: "2 wait in collective ", &two: "no rank waits in a collective; rank 1 has stood still for "} {
		_, said, _ := strings.Cut(a.Transcript(), blocked)
		said, _, _ = strings.Cut(said, "\n")
		t.Log(said)
		if !strings.Contains(said, want) || a == &two && !strings.Contains(said, "teardown") {
			t.Errorf("%s\nwant %q", said, want)
		}
	}
	var told string
	wait(t, "answer that names the rank", func() bool {
		if _, err := os.Stat(filepath.Join(store, "v1", "hang")); err != nil {
			return false
		}
		out, err := exec.Command(harness.Binary, "fleet", "hang", store, "--job", name).CombinedOutput()
		told = string(out)
		return err == nil && strings.Contains(told, "node-a, node-b")
	}, one, two)
	t.Log(told)
	line := lineOf(t, "straggler.py", "time.sleep(1e6)")
	for _, want := range []string{"2 wait in collective ", "rank 1 has not come (at ", fmt.Sprintf("straggler.py:%d", line),
		"no step of it was seen since", "nanosleep"} {
		if !strings.Contains(told, want) {
			t.Errorf("fleet hang does not say %q", want)
		}
	}
	// As who looks into it would: the dumps of all nodes in one directory.
	dumps := filepath.Join(dir, "dumps")
	if err := os.Mkdir(dumps, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, a := range []agent{one, two} {
		files, err := filepath.Glob(filepath.Join(a.spool, "*-hang-*", "nccl_trace_rank_*"))
		if err != nil || len(files) == 0 {
			t.Errorf("no dumps in %s: %v", a.spool, err)
		}
		for _, file := range files {
			if err := os.Link(file, filepath.Join(dumps, filepath.Base(file))); err != nil {
				t.Error(err)
			}
		}
	}
	analysed, err := exec.Command(harness.PyPI.Python, "-m", "torch.distributed.flight_recorder.fr_trace", dumps).CombinedOutput()
	if err != nil || !strings.Contains(string(analysed), fmt.Sprintf("missing ranks: {%d}", victim)) {
		t.Errorf("fr_trace, %v:\n%s", err, analysed)
	}
}
