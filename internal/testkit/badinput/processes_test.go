package badinput

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// attach tries to record a process for two seconds in an empty directory.
func attach(t *testing.T, dir string, pid string, more ...string) result {
	t.Helper()
	argv := append([]string{ebpfprof, "attach", "--pid", pid, "--duration", "2s", "--output", filepath.Join(dir, "new", "dataset")}, more...)
	return runIn(t, dir, argv...)
}

func TestAttachRefusesAProcessThatIsNotThere(t *testing.T) {
	needKernel(t)
	dir := t.TempDir()
	attach(t, dir, "4194305").checkAlone(t, dir, failed, "no process with pid 4194305") // above the kernel's limit
	c := exec.Command("true")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	pid := fmt.Sprint(c.Process.Pid)
	attach(t, dir, pid).checkAlone(t, dir, failed, "no process with pid "+pid)
}

func TestAttachRefusesAZombie(t *testing.T) {
	needKernel(t)
	dir := t.TempDir()
	c := exec.Command("true")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	for start := time.Now(); !strings.Contains(status(c.Process.Pid), "\nState:\tZ"); time.Sleep(time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatal("it does not end")
		}
	}
	attach(t, dir, fmt.Sprint(c.Process.Pid)).checkAlone(t, dir, failed, "exited")
}

func status(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return string(b)
}

func TestAttachRefusesAKernelThread(t *testing.T) {
	needKernel(t)
	if comm, _ := os.ReadFile("/proc/2/comm"); strings.TrimSpace(string(comm)) != "kthreadd" {
		t.Skip("kernel: no kthreadd is seen here")
	}
	dir := t.TempDir()
	attach(t, dir, "2").checkAlone(t, dir, failed, "pid 2 is a kernel thread")
}

func TestAttachRefusesA32BitProgram(t *testing.T) {
	needKernel(t)
	program := native(t, "sleeper-32")
	trial := exec.Command(program)
	if err := trial.Start(); err != nil {
		t.Skipf("kernel: it does not run 32-bit programs: %v", err)
	}
	trial.Process.Kill()
	trial.Wait()
	dir := t.TempDir()
	b := start(t, nil, program)
	attach(t, dir, pidOf(b)).checkAlone(t, dir, failed, "32-bit")
	if !b.alive() {
		t.Error("the program ended")
	}
}

func TestAttachRefusesAStaticProgram(t *testing.T) {
	needKernel(t)
	dir := t.TempDir()
	b := start(t, nil, native(t, "sleeper-static"))
	b.until(t, "ready ")
	attach(t, dir, pidOf(b)).checkAlone(t, dir, failed, "static")
	if !b.alive() {
		t.Error("the program ended")
	}
}

func TestOneBadPIDAmongGoodOnesIsRefused(t *testing.T) {
	needKernel(t)
	dir := t.TempDir()
	b := openCL(t)
	attach(t, dir, pidOf(b), "--pid", "4194305").checkAlone(t, dir, failed, "no process with pid 4194305")
}

// A process that ends at any moment of the attach is one sentence, or a
// recording that captured nothing: never a hang, a traceback or a leftover.
func TestAttachToAProcessThatExitsMeanwhile(t *testing.T) {
	needKernel(t)
	program := native(t, "opencl")
	codes := map[int]int{}
	for i := range 24 {
		dir := t.TempDir()
		job := exec.Command("sh", "-c", fmt.Sprintf("sleep %.3f; exec %s %d", float64(i%3)*0.05, program, 300+i%4*40000))
		if err := job.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 25 * time.Millisecond)
		// Without --duration: the exit alone must end it.
		r := runIn(t, dir, ebpfprof, "attach", "--quiet", "--pid", fmt.Sprint(job.Process.Pid), "--output", filepath.Join(dir, "new", "dataset"))
		job.Wait()
		codes[r.code]++
		switch r.code {
		case ok:
		case failed:
			r.checkAlone(t, dir, failed, "exited")
		case nothing:
			r.check(t, nothing, "nothing was captured")
		default:
			r.check(t, ok)
		}
	}
	t.Logf("exit codes: %v", codes)
}

func TestAttachToAJobThatUsesNothingCapturesNothing(t *testing.T) {
	needKernel(t)
	dir := t.TempDir()
	b := start(t, nil, "/usr/bin/python3", "-c", "import time; print('ready', flush=True); time.sleep(600)")
	b.until(t, "ready")
	r := attach(t, dir, pidOf(b), bare...)
	r.check(t, nothing, "nothing was captured", "maps no library that the catalog knows", "doctor")
	if r.stdout != "" {
		t.Errorf("a summary of nothing: %s", r.stdout)
	}
	if n := rows(t, filepath.Join(dir, "new", "dataset"), "SELECT count(*) FROM process"); n != 1 {
		t.Errorf("%d processes in the dataset", n)
	}
}

func TestAttachToAnIdleJobSaysThatItIsIdle(t *testing.T) {
	needKernel(t)
	dir := t.TempDir()
	b := start(t, nil, "/usr/bin/python3", "-c", "import torch, time; print('ready', flush=True); time.sleep(600)")
	select {
	case <-b.done:
		t.Skip("kernel: Debian's python3-torch is not installed")
	case <-time.After(100 * time.Millisecond):
	}
	b.until(t, "ready")
	attach(t, dir, pidOf(b), bare...).check(t, nothing, "nothing was captured", "idle")
}
