package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// Two ranks, as torchrun starts them, given to the tracer by two --pid: each
// is a shell that becomes the rank once the probes can follow.
func TestGlooCollectivesAreCountedPerRank(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		gate := filepath.Join(t.TempDir(), "go")
		port := harness.FreePort(t)
		var ranks []*harness.Command
		for rank := range 2 {
			line := []string{
				"env", fmt.Sprintf("RANK=%d", rank), fmt.Sprintf("LOCAL_RANK=%d", rank), "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2",
				"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port, "TORCHELASTIC_RUN_ID=e2e", "GLOO_SOCKET_IFNAME=lo",
			}
			wait := fmt.Sprintf("while [ ! -e %s ]; do sleep 0.1; done; exec %s", gate, strings.Join(v.Job("gloo.py", "--ranks", "2", "--steps",
				"6"), " "))
			ranks = append(ranks, harness.Start(t, append(line, "/bin/sh", "-c", wait)...))
		}
		tracing := harness.Attach(t, harness.Unbudgeted, ranks[0].Process.Pid, ranks[1].Process.Pid)
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		told := []harness.Truth{ranks[0].FinishJob(t), ranks[1].FinishJob(t)}
		r := tracing.Finish(t)
		r.Lossless(t)
		for rank, told := range told {
			training, byHand := told, told
			training.End, byHand.Begin = told.Trained, told.Trained
			for part, c := range map[string]struct {
				region harness.Truth
				calls  map[string]harness.Calls
			}{"training": {training, told.DDP}, "by hand": {byHand, told.ByHand}} {
				want := map[string]int64{}
				for name, n := range c.calls {
					want[strings.Replace(name, "ProcessGroupGloo::", "gloo::", 1)] = n.Calls
				}
				got := r.Counts(t, "SELECT name, count(*) FROM span WHERE layer = 'collective' AND category = 'issue' AND status = 'ok' AND %s "+
					"GROUP BY ALL", r.Within(t, c.region))
				harness.SameCounts(t, fmt.Sprintf("rank %d, %s", rank, part), got, want)
			}
			// What was issued, before the region too, a thread of the group has run.
			work := r.Counts(t, "SELECT category, count(*) FROM span WHERE layer = 'collective' AND pid = %d GROUP BY ALL", told.PID)
			if work["work"] != work["issue"] || work["issue"] < 30 {
				t.Errorf("rank %d: %d collectives issued, %d run", rank, work["issue"], work["work"])
			}
			identity := fmt.Sprint(r.Rows(t, "SELECT rank, local_rank, world_size, job_id FROM process WHERE pid = %d", told.PID))
			if expected := fmt.Sprintf("[[%d %d 2 e2e]]", rank, rank); identity != expected {
				t.Errorf("rank, local_rank, world_size, job_id: %s, want %s", identity, expected)
			}
		}
		if told[0].SHA256 == "" || told[0].SHA256 != told[1].SHA256 {
			t.Errorf("the ranks ended with different models: %s and %s", told[0].SHA256, told[1].SHA256)
		}
	})
}
