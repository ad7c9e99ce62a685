package paired

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
)

// A shared machine runs twice as slowly at one second as at the next: what others
// do on the same silicon is in every step, in its CPU time too, and no order of
// the windows takes it out. So a job can have a twin: the same job once more, on
// the same core, never traced. The scheduler gives the core to each in turn for a
// few milliseconds, so whatever slows one slows both, and only their ratio is
// compared. What each waits for the core is left out of its steps.

// probedFiles are those that the tracer's probes go into. The twin has copies,
// with inodes of their own, so that it meets no probe and the tracer does not take
// it for another job on the same library.
var probedFiles = regexp.MustCompile(`/(libtorch_cpu|libtorch_python|libc10)\.so[^/]*$`)

// StartWithTwin starts a job and its twin on the same cores, as taskset counts them.
func StartWithTwin(cores string, python setup.Interpreter, script string, options ...string) (*Job, error) {
	return startWithTwin(nil, nil, cores, python, script, options...)
}

// StartNamedWithTwin does that for who finds jobs by itself: by their environments it is
// told that the one is job name, and the other is not.
func StartNamedWithTwin(name string, cores string, python setup.Interpreter, script string, options ...string) (*Job, error) {
	called := func(name string) []string { return []string{"env", "TORCHELASTIC_RUN_ID=" + name} }
	return startWithTwin(called(name), called("twin-of-"+name), cores, python, script, options...)
}

// startWithTwin has other commands start the two.
func startWithTwin(job, twin []string, cores string, python setup.Interpreter, script string, options ...string) (*Job, error) {
	j, err := startBy(job, cores, python, script, options...)
	if err != nil {
		return nil, err
	}
	if j.twin, err = j.startTwin(twin, cores, python, script, options...); err != nil {
		j.Kill()
		return nil, fmt.Errorf("starting the job's twin: %w", err)
	}
	return j, nil
}

func (j *Job) startTwin(by []string, cores string, python setup.Interpreter, script string, options ...string) (*Job, error) {
	dir, err := os.MkdirTemp("", "ebpfprof-bench-twin-")
	if err != nil {
		return nil, err
	}
	binds, err := copyProbedFiles(j.Pid, dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	inPlace := strings.Join(append(binds, `exec "$@"`), " && ")
	private := []string{"unshare", "--mount", "--propagation", "private", "sh", "-c", inPlace, "twin"}
	twin, err := startBy(slices.Concat(private, by), cores, python, script, options...)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	twin.files = dir
	return twin, nil
}

// copyProbedFiles copies what a process has mapped and may get probes, and
// returns the commands that put the copies in place.
func copyProbedFiles(pid int, dir string) (binds []string, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	done := map[string]bool{}
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		path := fields[len(fields)-1]
		if done[path] || !probedFiles.MatchString(path) {
			continue
		}
		done[path] = true
		own := filepath.Join(dir, fmt.Sprint(len(binds)))
		if err := copyFile(path, own); err != nil {
			return nil, err
		}
		binds = append(binds, fmt.Sprintf("mount --bind '%s' '%s'", own, path))
	}
	if len(binds) == 0 {
		return nil, fmt.Errorf("pid %d has none of the libraries that get probes mapped", pid)
	}
	return binds, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// coreWait is how long the job's main thread has waited for its core, nanoseconds:
// the second field of schedstat.
func (j *Job) coreWait() (waited int64, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", j.Pid))
	if err != nil {
		return 0, err
	}
	var ran int64
	if _, err := fmt.Sscan(string(raw), &ran, &waited); err != nil {
		return 0, fmt.Errorf("reading how long pid %d waited for its core: %w", j.Pid, err)
	}
	return waited, nil
}

// coreWaits is that of the job and its twin. Without a twin the core is the job's.
func (j *Job) coreWaits() (waited [2]int64, err error) {
	if j.twin == nil {
		return waited, nil
	}
	if waited[0], err = j.coreWait(); err == nil {
		waited[1], err = j.twin.coreWait()
	}
	return waited, err
}

// killTwin ends the twin and removes its files.
func (j *Job) killTwin() {
	if j.twin == nil {
		return
	}
	j.twin.Kill()
	os.RemoveAll(j.twin.files)
}

// Against sets the steps of a job beside those of its twin, in a window.
type Against struct{ Own, twin Steps }

// mean is how many of the twin's steps one of the job's takes, waits for the core
// left out on both sides.
func (a Against) mean(w window) float64 {
	return a.Own.net(w, w.waited[0]) / a.twin.net(w, w.waited[1])
}

// median is the ratio of the usual steps, by their CPU time.
func (a Against) median(w window) float64 {
	return a.Own.In(w.from, w.to).medianCPU() / a.twin.In(w.from, w.to).medianCPU()
}

// net is the mean time of a step in a window, so much of which the job waited for
// its core, nanoseconds.
func (s Steps) net(w window, waited int64) float64 {
	count := 0.0
	for _, x := range s.Touching(w.from, w.to) {
		inside := min(x.End(), w.to) - max(x.start, w.from)
		count += float64(inside) / float64(x.Duration)
	}
	return float64(w.to-w.from-waited) / count
}
