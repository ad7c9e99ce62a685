package jobs

import (
	"os"
	"os/exec"
	"testing"
)

// Two agents on one node share a job by its ranks, as tests do that need two hosts.
func TestOnlyTheRanksThatAreNamedAreRecorded(t *testing.T) {
	c := exec.Command("sleep", "1000")
	c.Env = []string{"RANK=1", "TORCHELASTIC_RUN_ID=named"}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	for rank, want := range map[int32]string{0: "", 1: "named"} {
		d := New(nil, []int32{rank})
		if job, _ := d.jobOf(c.Process.Pid, ""); job.name != want {
			t.Errorf("with ranks: [%d] rank 1 is of job %q", rank, job.name)
		}
		if job, _ := d.jobOf(os.Getpid(), "mine"); job.name != "" {
			t.Errorf("a process without a rank is of job %q", job.name)
		}
	}
}
