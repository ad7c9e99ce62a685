package jobs

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

func distinct(n *Names, found ...Job) (called []string) {
	for _, j := range n.Distinct(found) {
		called = append(called, j.Name)
	}
	return called
}

// Whatever other users call their jobs, a job keeps its name, or that with its user behind it.
func TestAJobKeepsItsNameBesideThoseThatClaimIt(t *testing.T) {
	roots, claimed := Job{Name: "77", began: 10}, Job{Name: "77", User: 65534, began: 20}
	var n Names
	for range 3 {
		if called := distinct(&n, roots, claimed); !slices.Equal(called, []string{"77", "77@65534"}) {
			t.Fatalf("they are called %q", called)
		}
	}
	again := claimed
	again.Space = "0123456789abcdef"
	if called := distinct(&n, roots, claimed, again); !slices.Equal(called, []string{"77", "77@65534", "77@65534-0123456789ab"}) {
		t.Errorf("with a container they are called %q", called)
	}
	// The claimant stays what it is called when the job has ended; a new look at it alone begins anew.
	if called := distinct(&n, claimed); !slices.Equal(called, []string{"77@65534"}) {
		t.Errorf("it is called %q when the other has ended", called)
	}
	if called := distinct(&n); len(called) != 0 {
		t.Errorf("%q", called)
	}
	if len(n.called) != 0 || len(n.holders) != 0 {
		t.Errorf("%v and %v are kept of jobs that have ended", n.called, n.holders)
	}
}

// A claimant that came first loses the name to the job whose scheduler made its control group.
func TestAConfirmedJobTakesItsNameBack(t *testing.T) {
	claimed, real := Job{Name: "77", User: 65534, began: 10}, Job{Name: "77", User: 1000, began: 20, confirmed: true}
	var n Names
	if called := distinct(&n, claimed); !slices.Equal(called, []string{"77"}) {
		t.Fatalf("%q", called)
	}
	for range 2 {
		all := n.Distinct([]Job{claimed, real})
		if all[0].User != 1000 || all[0].Name != "77" || all[1].Name != "77@65534" {
			t.Errorf("%+v", all)
		}
	}
}

func TestOnlyASchedulersControlGroupConfirmsAJob(t *testing.T) {
	for cgroup, want := range map[string]bool{
		"/slurm/uid_1000/job_77/step_0":                            true,
		"/system.slice/slurmstepd.scope/job_77/step_0/user/task_0": true,
		"/pbspro.service/jobid/77.server":                          true,
		"/slurm/uid_1000/job_770/step_0":                           false,
		"/user.slice/user-1000.slice/user@1000.service/job_77":     false,
		"": false,
	} {
		if got := confirms(cgroup, "77"); got != want {
			t.Errorf("%q: %t", cgroup, got)
		}
	}
}

// Processes of two users that say the same of themselves are two jobs.
func TestProcessesOfTwoUsersAreNoJobTogether(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to run a process as another user")
	}
	var pids []int
	d := New(nil, nil)
	for _, user := range []uint32{0, 65534} {
		c := exec.Command("sleep", "1000")
		c.Env = []string{"SLURM_JOB_ID=77"}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		pids = append(pids, c.Process.Pid)
	}
	first, _ := d.jobOf(pids[0], "")
	second, _ := d.jobOf(pids[1], "")
	if first.name != "77" || second.name != "77" || first.of() == second.of() || second.user != 65534 {
		t.Errorf("%+v, %+v", first, second)
	}
}
