package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// What is done to a rank from outside.

// quota gives the process a fifth of a CPU.
func quota(pid int) (undo func(), err error) {
	for _, v := range []struct{ root, file, value, back string }{
		{"/sys/fs/cgroup", "cpu.max", "20000 100000", "/sys/fs/cgroup"},
		{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "20000", "/sys/fs/cgroup/cpu"},
	} {
		dir := filepath.Join(v.root, fmt.Sprintf("ebpfprof-faults-%d", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		undo = func() {
			_ = os.WriteFile(filepath.Join(v.back, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
			_ = os.Remove(dir)
		}
		err = os.WriteFile(filepath.Join(dir, v.file), []byte(v.value), 0o644)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
		}
		if err == nil {
			return undo, nil
		}
		undo()
	}
	return nil, fmt.Errorf("%w: no control group of the CPU can be made", errNotHere)
}

// neighbour pins the process to a CPU of its own and three busy loops beside it; the
// peers have the other CPUs.
func neighbour(pid int) (undo func(), err error) {
	var one unix.CPUSet
	one.Set(0)
	if err := pin(pid, &one); err != nil {
		return nil, err
	}
	var loops []*exec.Cmd
	undo = func() {
		for _, c := range loops {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
	for range 3 {
		c := exec.Command("/bin/sh", "-c", "while :; do :; done")
		if err := c.Start(); err != nil {
			undo()
			return nil, fmt.Errorf("starting a neighbour: %w", err)
		}
		loops = append(loops, c)
		if err := pin(c.Process.Pid, &one); err != nil {
			undo()
			return nil, err
		}
	}
	return undo, nil
}

// pin puts all threads of a process on some CPUs.
func pin(pid int, on *unix.CPUSet) error {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(tid, on); err != nil && err != unix.ESRCH {
			return fmt.Errorf("pinning thread %d: %w", tid, err)
		}
	}
	return nil
}

// pulses stops the process for 60 of every 100 ms.
func pulses(pid int) (undo func(), err error) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			_ = unix.Kill(pid, unix.SIGSTOP)
			time.Sleep(60 * time.Millisecond)
			_ = unix.Kill(pid, unix.SIGCONT)
			select {
			case <-over:
				return
			case <-time.After(40 * time.Millisecond):
			}
		}
	}()
	return func() { close(over); <-done }, nil
}

// stopped stops the process for good.
func stopped(pid int) (undo func(), err error) {
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		return nil, err
	}
	return func() { _ = unix.Kill(pid, unix.SIGCONT) }, nil
}
