package badinput

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// asNobody runs a command as a user without rights, but for some capabilities.
func asNobody(t *testing.T, capabilities string, argv ...string) []string {
	t.Helper()
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("kernel: no setpriv to become another user with")
	}
	drop := []string{"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"}
	if capabilities != "" {
		drop = append(drop, "--inh-caps", capabilities, "--ambient-caps", capabilities)
	}
	return append(drop, argv...)
}

// openDirectory is a directory that every user may write into.
func openDirectory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "badinput-open-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestWithoutPrivilegesTheMissingCapabilitiesAreNamed(t *testing.T) {
	needKernel(t)
	job := openCL(t)
	for _, c := range []struct {
		capabilities string
		words        []string
	}{
		{"", []string{"CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE", "sudo"}},
		{"+perfmon,+sys_ptrace", []string{"CAP_BPF"}},
		{"+bpf,+sys_ptrace", []string{"CAP_PERFMON"}},
		{"+bpf,+perfmon", []string{"CAP_SYS_PTRACE"}},
	} {
		dir := openDirectory(t)
		r := runIn(t, dir, asNobody(t, c.capabilities, ebpfprof, "attach", "--pid", pidOf(job), "--output", filepath.Join(dir, "d"))...)
		r.checkAlone(t, dir, notPermitted, c.words...)
	}
	if r := run(t, asNobody(t, "", ebpfprof, "doctor")...); r.code != notPermitted {
		t.Errorf("doctor: exit code %d\n%s", r.code, r.stderr)
	}
}

func TestThreeCapabilitiesAreEnoughToAttach(t *testing.T) {
	needKernel(t)
	if !needUprobeMulti() {
		t.Skip("kernel: no uprobe.multi, and perf uprobes need CAP_SYS_ADMIN")
	}
	job, dir := openCL(t), openDirectory(t)
	dataset := filepath.Join(dir, "d")
	r := runIn(t, dir, asNobody(t, "+bpf,+perfmon,+sys_ptrace", ebpfprof, "attach", "--pid", pidOf(job), "--duration", "2s", "--output",
		dataset)...)
	r.check(t, ok)
	if n := rows(t, dataset, kernelLaunches); n < 100 {
		t.Errorf("%d launches", n)
	}
}

func TestCapabilitiesOfAUserNamespaceDoNotCount(t *testing.T) {
	needKernel(t)
	if err := exec.Command("unshare", "-Ur", "true").Run(); err != nil {
		t.Skip("kernel: no user namespaces here")
	}
	dir, job := t.TempDir(), openCL(t)
	runIn(t, dir, "unshare", "-Ur", ebpfprof, "attach", "--pid", pidOf(job)).checkAlone(t, dir, notPermitted, "user namespace",
		"root of the host")
}

func TestATracerInAPIDNamespaceOfItsOwnRefuses(t *testing.T) {
	needKernel(t)
	dir := t.TempDir()
	runIn(t, dir, "unshare", "-mpf", "--mount-proc", ebpfprof, "run", "--", "true").checkAlone(t, dir, notStarted, "pid namespace",
		"--pid=host")
}

func TestTheKillSwitchRefuses(t *testing.T) {
	needKernel(t)
	dir, job := t.TempDir(), openCL(t)
	t.Setenv("EBPFPROF_DISABLE", "1")
	runIn(t, dir, ebpfprof, "attach", "--pid", pidOf(job)).checkAlone(t, dir, notPermitted, "switched off", "EBPFPROF_DISABLE")
	marker := filepath.Join(t.TempDir(), "ran")
	runIn(t, dir, ebpfprof, "run", "--", "touch", marker).checkAlone(t, dir, notStarted, "switched off")
	if _, err := os.Stat(marker); err == nil {
		t.Error("the command ran though nothing could be recorded of it")
	}
}
