package process

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func number(n *int32) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

func text(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

func TestJobIdentityOfEachLauncher(t *testing.T) {
	const slurm = "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_3\n"
	for _, c := range []struct {
		launcher, cgroup, environ string
		want                      string // job/rank/local/world, and where each is from
	}{
		{"none", "0::/user.slice\n", "HOME=/home/u", "-/-/-/- ///"},
		{"torchrun, rank 0", "0::/\n", "RANK=0 LOCAL_RANK=0 WORLD_SIZE=8 TORCHELASTIC_RUN_ID=abc",
			"abc/0/0/8 TORCHELASTIC_RUN_ID/RANK/LOCAL_RANK/WORLD_SIZE"},
		{"torchrun without an id", "0::/\n", "RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none", "-/1/1/2 /RANK/LOCAL_RANK/WORLD_SIZE"},
		{"Slurm, the cgroup first", slurm, "SLURM_JOB_ID=1 SLURM_PROCID=3 SLURM_LOCALID=1 SLURM_NTASKS=4",
			"77/3/1/4 cgroup/SLURM_PROCID/SLURM_LOCALID/SLURM_NTASKS"},
		{"Slurm under env -i", slurm, "", "77/-/-/- cgroup///"},
		{"Slurm by the environment", "0::/\n", "SLURM_JOB_ID=78 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=1",
			"78/0/0/1 SLURM_JOB_ID/SLURM_PROCID/SLURM_LOCALID/SLURM_STEP_NUM_TASKS"},
		{"torchrun in Slurm", slurm, "SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_NTASKS=2 RANK=11 LOCAL_RANK=3 WORLD_SIZE=16",
			"77/11/3/16 cgroup/RANK/LOCAL_RANK/WORLD_SIZE"},
		{"a Slurm batch script is no rank", "0::/system.slice/slurmstepd.scope/job_9/step_batch/user/task_0\n",
			"SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=4", "9/-/-/- cgroup///"},
		{"a Slurm batch script of one task is", "0::/system.slice/slurmstepd.scope/job_9/step_batch/user/task_0\n",
			"SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=1", "9/0/0/1 cgroup/SLURM_PROCID/SLURM_LOCALID/SLURM_NTASKS"},
		{"OpenMPI", "0::/\n", "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_SIZE=6 PMIX_RANK=5",
			"-/5/1/6 /OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_LOCAL_RANK/OMPI_COMM_WORLD_SIZE"},
		{"PMI", "0::/\n", "PMI_RANK=2 PMI_SIZE=4 MPI_LOCALRANKID=2", "-/2/2/4 /PMI_RANK/MPI_LOCALRANKID/PMI_SIZE"},
		{"PMIx alone", "0::/\n", "PMIX_RANK=7", "-/7/-/- /PMIX_RANK//"},
		{"an indexed Kubernetes job", "0::/\n", "JOB_COMPLETION_INDEX=0", "-/0/-/- /JOB_COMPLETION_INDEX//"},
		{"nonsense", "0::/\n", "RANK=one WORLD_SIZE=-1 LOCAL_RANK=99999999999 SLURM_JOB_ID=a\nb PMI_RANK=3", "-/3/-/- /PMI_RANK//"},
	} {
		environment := allowed([]byte(strings.ReplaceAll(c.environ, " ", "\x00")))
		j := identify(parseCgroup([]byte(c.cgroup)), environment)
		got := fmt.Sprintf("%s/%s/%s/%s %s/%s/%s/%s", text(j.JobID), number(j.Rank), number(j.LocalRank), number(j.WorldSize),
			j.JobIDFrom, j.RankFrom, j.LocalRankFrom, j.WorldSizeFrom)
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.launcher, got, c.want)
		}
	}
}

func TestNothingElseOfTheEnvironmentIsKept(t *testing.T) {
	const secret = "hunter2-hunter2"
	r := newRecording(t)
	r.process(7, func(string) {
		r.file("7/environ", "AWS_SECRET_ACCESS_KEY="+secret+"\x00RANK=3\x00XRANK="+secret+"\x00RANKX="+secret+
			"\x00rank="+secret+"\x00WANDB_API_KEY="+secret+"\x00"+secret+"\x00="+secret+"\x00SLURM_JOB_ID="+strings.Repeat(secret, 20)+"\x00")
	})
	p, err := r.fs().Open(7)
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	for form, kept := range map[string]string{"json": string(asJSON), "%+v": fmt.Sprintf("%+v %#v", *p, p.Job)} {
		if strings.Contains(kept, secret) {
			t.Errorf("a secret in %s: %s", form, kept)
		}
	}
	if p.Job.Rank == nil || *p.Job.Rank != 3 {
		t.Errorf("rank %s, want 3", number(p.Job.Rank))
	}
	if !strings.Contains(string(asJSON), `"Rank":3`) {
		t.Errorf("no rank in %s", asJSON)
	}
}

func TestContainersOfEachRuntime(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for path, want := range map[string]string{
		"/system.slice/docker-" + id + ".scope": id,
		"/docker/" + id:                         id,
		"/docker/" + id + "/init.scope":         id,
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1f_2e.slice/cri-containerd-" + id + ".scope": id,
		"/kubepods.slice/kubepods-pod1f.slice/crio-" + id + ".scope":                                                 id,
		"/kubepods.slice/kubepods-pod1f.slice/crio-conmon-" + id + ".scope":                                          "",
		"/kubepods/burstable/pod1f2e/" + id:                                                                          id,
		"/kubepods-burstable-pod1f2e.slice:cri-containerd:" + id:                                                     id,
		"/machine.slice/libpod-" + id + ".scope/container":                                                           id,
		"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id + ".scope":                           id,
		"/../../docker-" + id + ".scope":                                                                             id,
		"/lxc.payload.train7/system.slice/x.service":                                                                 "train7",
		"/lxc/train7":         "train7",
		"/lxc.monitor.train7": "",
		"/user.slice/user-0.slice/session-1.scope":      "",
		"/process_api/1a8ccc42ebd65f66eacb60589c161f30": "",
		"/": "",
	} {
		if got := parseCgroup([]byte("0::" + path + "\n")).container; got != want {
			t.Errorf("%s: container %q, want %q", path, got, want)
		}
	}
}

func TestTheCgroupPathIsTheOneThatSaysMost(t *testing.T) {
	for lines, want := range map[string]string{
		"0::/a/b\n": "/a/b",
		"9:name=systemd:/\n4:memory:/p/x\n0::/\n":       "/p/x",
		"12:cpu,cpuacct:/slurm/uid_0/job_5\n0::/init\n": "/init",
		"0::/\n": "",
		"":       "",
		"junk":   "",
	} {
		if got := parseCgroup([]byte(lines)).path; got != want {
			t.Errorf("%q: %q, want %q", lines, got, want)
		}
	}
	if job, step := slurmJob("/slurm/uid_1000/job_12/step_batch/task_0"); job != "12" || step != "batch" {
		t.Errorf("job %q, step %q", job, step)
	}
	if job, _ := slurmJob("/system.slice/node7_slurmstepd.scope/job_12/step_3/user/task_0"); job != "12" {
		t.Errorf("job %q with several slurmd", job)
	}
	if job, _ := slurmJob("/nomad/job_12/step_0"); job != "" {
		t.Errorf("job %q of another scheduler", job)
	}
}

func TestThreadRoles(t *testing.T) {
	for _, c := range []struct {
		comm  string
		first bool
		want  string
	}{
		{"python3", true, "main"}, {"python3", false, ""}, {"pt_main_thread", true, "main"},
		{"pt_autograd_0", false, "autograd"}, {"pt_autograd_15", false, "autograd"},
		{"pt_data_worker", true, "dataloader_worker"}, {"pt_data_pin", false, "dataloader_pin"},
		{"pt_nccl_watchdg", false, "nccl_watchdog"}, {"pt_nccl_heartbt", false, "nccl_heartbeat"},
		{"pt_thread_pool", false, "thread_pool"}, {"pt_tcpstore_uv", false, "tcp_store"}, {"pt_autograd", false, ""},
	} {
		if got := Role(c.comm, c.first); got != c.want {
			t.Errorf("Role(%q, %v) = %q, want %q", c.comm, c.first, got, c.want)
		}
	}
}
