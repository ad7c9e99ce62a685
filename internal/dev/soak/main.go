// Soak records jobs that never stop to bring something new: children, libraries,
// shapes of stacks, scopes with names of their own. It watches what the tracer takes
// for that, and fails if it grows.
//
//	soak [-for 1m] [-rotations 43200] [-tracer bin/ebpfprof] [-native testdata/native/build]
//	soak -restarts 1000 [-agent bin/ebpfprof-agent] [-native testdata/native/build]
//
//	soak -watched 2h [-agent bin/ebpfprof-agent] [-torch 2]
//
// The other forms are of the agent: that many short jobs come and go (restarts.go), or one
// job trains for as long as that (hours.go).
//
// What a month brings by its clock is its rotations, one a minute: as many are
// made in the time given, as far as one takes no longer than its turn. Their files are
// counted and taken away, as an uploader does. It needs root. What it prints is the
// table for docs/overhead-appendix.md.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	length := flag.Duration("for", time.Minute, "how long to record")
	rotations := flag.Int("rotations", 30*24*60, "into how many rotations of the dataset's files that is divided: a month's")
	tracer := flag.String("tracer", "bin/ebpfprof", "the program that records")
	native := flag.String("native", "testdata/native/build", "where the native jobs are built")
	restarts := flag.Int("restarts", 0, "how many jobs come and go under the agent, instead")
	watched := flag.Duration("watched", 0, "how long one job trains under the agent, instead")
	torch := flag.String("torch", "2", "the PyTorch that it trains with")
	agent := flag.String("agent", "bin/ebpfprof-agent", "the agent that sees them")
	flag.Parse()
	if os.Geteuid() != 0 {
		fmt.Println("soak: skipped: it needs root")
		return
	}
	run := func() error { return soak(*length, *rotations, *tracer, *native) }
	if *restarts > 0 {
		run = func() error { return comeAndGo(*restarts, *agent, *native) }
	}
	if *watched > 0 {
		run = func() error { return hours(*watched, *agent, *torch) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// job is a process of an unprivileged user that waits for a byte to go on.
type job struct {
	*exec.Cmd
	stdin io.WriteCloser
	made  atomic.Int64 // what it says that it has made
}

// nobody is the user whose jobs are recorded.
const nobody = 65534

func startJob(program string, arguments ...string) (*job, error) {
	return startJobWith(nil, program, arguments...)
}

// startJobWith adds to the job's environment.
func startJobWith(environment []string, program string, arguments ...string) (*job, error) {
	j := &job{Cmd: exec.Command(program, arguments...)}
	j.Dir = "/"
	j.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	j.Env = append(append(os.Environ(), "LIVES_COUNT=1"), environment...)
	var err error
	if j.stdin, err = j.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := j.StdoutPipe()
	if err != nil {
		return nil, err
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if n, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
				j.made.Store(n)
			}
		}
	}()
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

func soak(length time.Duration, rotations int, tracer, native string) error {
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
	scopes, err := install(filepath.Join(native, "scopes", "libtorch_cpu.so"), directory)
	if err != nil {
		return err
	}
	const forever = "1000000000"
	var jobs []*job
	rotate := max(fastestRotation, length/time.Duration(max(1, rotations)))
	dataset := filepath.Join(directory, "dataset")
	line := []string{"attach", "--quiet", "--budget", "off", "--frequency", "9999", "--counters", "off", "--limit", "stacks=131072",
		"--rotate", rotate.String(), "--output", dataset}
	for _, arguments := range [][]string{{"churn", forever}, {"load", forever, library, fresh}, {"scopes", forever, scopes},
		{"shapes", forever}, {"shapes", forever}} {
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
	files := &uploader{directory: dataset, turn: rotate, rows: map[string]int64{}}
	readings, err := watch(recording.Process.Pid, length, ended, files)
	if err != nil {
		return err
	}
	begun := time.Now()
	recording.Process.Signal(syscall.SIGTERM)
	if err := <-ended; err != nil {
		return fmt.Errorf("the recording ended with %w", err)
	}
	if err := files.take(); err != nil {
		return err
	}
	fmt.Printf("%s, a rotation each %s; ended within %.1f s\n\n", length, rotate, time.Since(begun).Seconds())
	fmt.Printf("made: %d children, %d libraries loaded, %d scopes with names of their own\n", jobs[0].made.Load(), jobs[1].made.Load(),
		jobs[2].made.Load())
	fmt.Printf("written: %d rotations; %s\n\n", files.rotations, files.tables(length))
	return judge(os.Stdout, readings)
}

// watch reads what the tracer takes until the time is over.
func watch(pid int, length time.Duration, ended <-chan error, files *uploader) (readings []reading, err error) {
	tick := time.NewTicker(max(time.Second, length/200))
	defer tick.Stop()
	for over := time.After(length); ; {
		select {
		case err := <-ended:
			return nil, fmt.Errorf("the recording ended by itself: %v", err)
		case <-over:
			return readings, nil
		case <-tick.C:
			if err := files.take(); err != nil {
				return nil, err
			}
			r, err := read(pid)
			if err != nil {
				return nil, err
			}
			r["rotation_ms"] = float64(files.longest.Microseconds()) / 1000
			r["file_rows_again"] = float64(files.again)
			files.longest = 0
			readings = append(readings, r)
		}
	}
}
