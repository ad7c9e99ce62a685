// Soak records jobs that never stop to bring something new: children, libraries,
// shapes of stacks. It watches what the tracer takes for that, and fails if it grows.
//
//	soak [-for 1m] [-tracer bin/ebpfprof] [-native testdata/native/build]
//
// It needs root. What it prints is the table for docs/overhead.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	length := flag.Duration("for", time.Minute, "how long to record")
	tracer := flag.String("tracer", "bin/ebpfprof", "the program that records")
	native := flag.String("native", "testdata/native/build", "where the native jobs are built")
	flag.Parse()
	if os.Geteuid() != 0 {
		fmt.Println("soak: skipped: it needs root")
		return
	}
	if err := soak(*length, *tracer, *native); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// job is a process of an unprivileged user that waits to be told to go on.
type job struct {
	*exec.Cmd
	stdin io.WriteCloser
}

// nobody is the user whose jobs are recorded.
const nobody = 65534

func startJob(program string, arguments ...string) (*job, error) {
	j := &job{Cmd: exec.Command(program, arguments...)}
	j.Dir = "/"
	j.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var err error
	if j.stdin, err = j.StdinPipe(); err != nil {
		return nil, err
	}
	return j, j.Start()
}

func (j *job) end() {
	syscall.Kill(-j.Process.Pid, syscall.SIGKILL)
	j.Wait()
}

// install copies a file to where every user may read it.
func install(from, directory string) (string, error) {
	b, err := os.ReadFile(from)
	if err != nil {
		return "", fmt.Errorf("%w: run make native", err)
	}
	to := filepath.Join(directory, filepath.Base(from))
	return to, os.WriteFile(to, b, 0o755)
}

func soak(length time.Duration, tracer, native string) error {
	directory, err := os.MkdirTemp("", "ebpfprof-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	if err := os.Chmod(directory, 0o755); err != nil {
		return err
	}
	fresh := filepath.Join(directory, "fresh")
	if err := errors.Join(os.Mkdir(fresh, 0o755), os.Chown(fresh, nobody, nobody)); err != nil {
		return err
	}
	lives, err := install(filepath.Join(native, "lives"), directory)
	if err != nil {
		return err
	}
	library, err := install(filepath.Join(native, "libcallee-plain.so"), directory)
	if err != nil {
		return err
	}
	const forever = "1000000000"
	var jobs []*job
	line := []string{"attach", "--quiet", "--frequency", "997", "--counters", "off", "--rotate", max(time.Second, length/20).String(), "--output", filepath.Join(directory, "dataset")}
	for _, arguments := range [][]string{{"churn", forever}, {"load", forever, library, fresh}, {"shapes", forever}} {
		j, err := startJob(lives, arguments...)
		if err != nil {
			return err
		}
		defer j.end()
		jobs = append(jobs, j)
		line = append(line, "--pid", fmt.Sprint(j.Process.Pid))
	}
	recording := exec.Command(tracer, line...)
	recording.Stdout, recording.Stderr = os.Stderr, os.Stderr
	if err := recording.Start(); err != nil {
		return err
	}
	defer recording.Process.Kill()
	ended := make(chan error, 1)
	go func() { ended <- recording.Wait() }()
	time.Sleep(5 * time.Second) // until it is attached
	for _, j := range jobs {
		if _, err := io.WriteString(j.stdin, "go\n"); err != nil {
			return fmt.Errorf("starting a job: %w", err)
		}
	}
	readings, err := watch(recording.Process.Pid, length, ended)
	if err != nil {
		return err
	}
	begun := time.Now()
	recording.Process.Signal(syscall.SIGTERM)
	if err := <-ended; err != nil {
		return fmt.Errorf("the recording ended with %w", err)
	}
	fmt.Printf("ended within %.1f s\n", time.Since(begun).Seconds())
	return judge(os.Stdout, readings)
}

// watch reads what the tracer takes until the time is over.
func watch(pid int, length time.Duration, ended <-chan error) (readings []reading, err error) {
	tick := time.NewTicker(max(time.Second, length/200))
	defer tick.Stop()
	for over := time.After(length); ; {
		select {
		case err := <-ended:
			return nil, fmt.Errorf("the recording ended by itself: %v", err)
		case <-over:
			return readings, nil
		case <-tick.C:
			r, err := read(pid)
			if err != nil {
				return nil, err
			}
			readings = append(readings, r)
		}
	}
}
