package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// What is done to a rank from outside.

// hierarchy is where control groups of the CPU may be made, and how one gets a twentieth of a CPU: on
// a busy machine a rank does not get much more by itself, and a fifth would hold nobody back.
type hierarchy struct{ root, file, value string }

var hierarchies = []hierarchy{
	{"/sys/fs/cgroup", "cpu.max", "5000 100000"},
	{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "5000"},
}

// quota gives the process a twentieth of a CPU.
func quota(pid int) (undo func(), err error) { return quotaIn(hierarchies, pid) }

func quotaIn(all []hierarchy, pid int) (undo func(), err error) {
	for _, h := range all {
		dir := filepath.Join(h.root, fmt.Sprintf("ebpfprof-faults-%d", pid))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		undo = func() {
			_ = tell(filepath.Join(h.root, "cgroup.procs"), strconv.Itoa(pid))
			_ = os.Remove(dir)
		}
		err = tell(filepath.Join(dir, h.file), h.value)
		if err == nil {
			err = tell(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid))
		}
		if err == nil {
			return undo, nil
		}
		undo()
	}
	return nil, fmt.Errorf("%w: no control group of the CPU can be made", errNotHere)
}

// tell writes into a file that the kernel has made. Where both versions of control groups
// are mounted, /sys/fs/cgroup is a plain tmpfs, in which a new file would hold nobody back.
func tell(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
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

// asked has the job's own fault begin.
func asked(pid int) (undo func(), err error) {
	return func() {}, unix.Kill(pid, unix.SIGUSR1)
}
