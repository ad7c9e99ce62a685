package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/paired"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
)

// startResult is how long a user waits from the command until a process is recorded.
type startResult struct {
	what, python string
	ms           figure.Spread
}

// startTarget is what a plain process may take, in milliseconds.
const startTarget = 500

// nothingCaptured is the exit status of a recording of a process that does nothing.
const nothingCaptured = 5

// program is the command that users run; make bench builds it.
const program = "bin/ebpfprof"

// measureStart times `ebpfprof attach` from its exec until it says that the probes are
// in, of a process that has nothing to probe and of one that trains: with what
// earlier recordings left in the caches, and, of the latter, with an empty cache.
func (r *results) measureStart(s setup.Settings) error {
	plain := exec.Command("sleep", "infinity")
	if err := plain.Start(); err != nil {
		return err
	}
	err := r.timeStarts("a plain process", "", plain.Process.Pid, s.Attaches, false)
	plain.Process.Kill()
	plain.Wait()
	if err != nil {
		return err
	}
	for _, python := range s.Interpreted {
		j, err := paired.Start(python, "mlp.py")
		if err != nil {
			return err
		}
		err = errors.Join(
			r.timeStarts("a training loop", python.Name, j.Pid, s.Attaches, false),
			r.timeStarts("a training loop, the cache empty", python.Name, j.Pid, 3, true))
		if _, ended := j.Stop(); err != nil || ended != nil {
			return errors.Join(err, ended)
		}
	}
	return nil
}

func (r *results) timeStarts(what, python string, pid, times int, empty bool) error {
	result := &startResult{what: what, python: python}
	for n := range times + 1 {
		took, err := timeStart(pid, empty)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if n > 0 || empty { // the first fills the cache
			result.ms.Add(float64(took) / 1e6)
		}
	}
	setup.Say("  %s %s: %s ms", what, python, &result.ms)
	r.starts = append(r.starts, result)
	return nil
}

// timeStart records a process for a moment. With empty the command finds nothing of
// earlier recordings.
func timeStart(pid int, empty bool) (time.Duration, error) {
	scratch, err := os.MkdirTemp("", "ebpfprof-bench-start-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch)
	command := exec.Command(program, "attach", "--pid", strconv.Itoa(pid), "--duration", "100ms", "-o", filepath.Join(scratch, "dataset"))
	if empty {
		command.Env = append(os.Environ(), "XDG_CACHE_HOME="+scratch)
	}
	said, err := command.StderrPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := command.Start(); err != nil {
		return 0, fmt.Errorf("%w (make build)", err)
	}
	var took time.Duration
	var text strings.Builder
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if took == 0 && strings.HasPrefix(lines.Text(), "attached in ") {
			took = time.Since(began)
		}
		fmt.Fprintln(&text, lines.Text())
	}
	err = command.Wait()
	if command.ProcessState.ExitCode() == nothingCaptured {
		err = nil
	}
	if err != nil || took == 0 {
		return 0, fmt.Errorf("%s attach: %w: %s", program, errors.Join(err, errNotAttached(took)), text.String())
	}
	return took, nil
}

func errNotAttached(took time.Duration) error {
	if took == 0 {
		return errors.New("it never said that it was attached")
	}
	return nil
}

func (r *results) starting(p *figure.Page) {
	if len(r.starts) == 0 {
		return
	}
	p.Line("## Starting a recording\n")
	p.Line("From the command's exec until all probes are in and the clock of `--duration` begins: programs loaded and verified, libraries " +
		"planned, unwind tables made (median and range). The tracer has both cores, of which the training loop keeps one busy. The cache " +
		"(`~/.cache/ebpfprof`) has the plans and tables of earlier recordings, or nothing.\n")
	p.Table("what is recorded", "PyTorch", "ms")
	for _, s := range r.starts {
		p.Row(s.what, s.python, s.ms.String())
	}
	p.Line("")
}

func (r *results) startTargets(p *figure.Page) {
	for _, s := range r.starts {
		if s.python == "" {
			p.Row(fmt.Sprintf("%s is recorded ≤ %d ms after the command", s.what, startTarget), "", fmt.Sprintf("%.0f ms",
				figure.Median(s.ms.Values)), figure.Verdict(figure.Median(s.ms.Values) <= startTarget))
		}
	}
}
