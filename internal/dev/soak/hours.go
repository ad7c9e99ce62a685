package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dev/agentrun"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
)

// One job for hours, under the agent with its defaults: a worker watches it, and takes such
// windows as it finds reason for. The job trains for real, of many small operators, in steps
// as long as an accelerator's, so that the machine is left to others.

const (
	hoursName   = "soak-hours"
	hoursScript = "testdata/jobs/mlp.py"
	// mostWatching is what a worker may have of memory while it watches, MiB: 200 MB.
	mostWatching = 190
	hoursBegin   = 3 * time.Minute // until the job is watched
	leastHours   = 3 * time.Minute
)

var hoursOptions = []string{"--layers", "24", "--pause", "0.03"}

func hours(length time.Duration, program, only string) error {
	if length < leastHours {
		return fmt.Errorf("%s is too short: the agent tells the steps that it has seen once a minute; give -watched %s or more", length,
			leastHours)
	}
	pythons := setup.Interpreters(only)
	if len(pythons) == 0 {
		return fmt.Errorf("no PyTorch %q: make torch", only)
	}
	python := pythons[len(pythons)-1]
	directory, err := os.MkdirTemp("", "ebpfprof-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	forever := fmt.Sprintf("%.0f", (length + time.Hour).Seconds())
	job := exec.Command(python.Path, slices.Concat([]string{hoursScript, "--seconds", forever}, hoursOptions)...)
	job.Env = append(os.Environ(), "TORCHELASTIC_RUN_ID="+hoursName)
	job.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := job.Start(); err != nil {
		return fmt.Errorf("starting the job: %w", err)
	}
	defer job.Wait()
	defer job.Process.Kill()
	running, err := agentrun.Start(program, directory, "only: ["+hoursName+"]\n")
	if err != nil {
		return err
	}
	defer running.Kill()
	agent := underAgent{running}
	watched := func(jobs []agentrun.Job) bool { return steps(jobs)[hoursName] > 0 }
	if err := agent.Until("step seen", hoursBegin, watched); err != nil {
		return err
	}
	looks, err := agent.lookFor(length)
	if err != nil {
		return err
	}
	if err := agent.Stop(); err != nil {
		return err
	}
	fmt.Printf("%s of %s %s, PyTorch %s: ", length, hoursScript, strings.Join(hoursOptions, " "), python.Name)
	return looks.judge()
}

// look is one look at the agent and its worker.
type look struct {
	reading
	at      time.Time
	state   string
	steps   int64
	windows int64
	cpu     float64 // seconds, of both together
	spool   float64 // MB: what windows leave, a ring of 2 GB
}

// lookFor looks for so long, each ten seconds or a two-hundredth of the time.
func (w underAgent) lookFor(length time.Duration) (looks looks, err error) {
	each := min(10*time.Second, length/200)
	for until := time.Now().Add(length); time.Now().Before(until); time.Sleep(each) {
		jobs, err := w.Jobs()
		if err != nil {
			return nil, err
		}
		if len(jobs) != 1 {
			return nil, fmt.Errorf("the agent has %d jobs; it says\n%s", len(jobs), w.Said())
		}
		l := look{at: time.Now(), state: jobs[0].Status.State, steps: jobs[0].Status.Steps, windows: jobs[0].Status.Windows}
		if l.reading, l.cpu, err = w.read(); err != nil {
			return nil, err
		}
		l.spool = l.reading["spool_mb"]
		delete(l.reading, "spool_mb")
		if n := len(looks); n%90 == 89 {
			fmt.Fprintf(os.Stderr, "%s: %s, %d steps, %d windows, worker %.0f MiB\n", l.at.Sub(looks[0].at).Round(time.Minute), l.state, l.steps,
				l.windows, l.reading["worker_rss_mib"])
		}
		looks = append(looks, l)
	}
	return looks, nil
}

type looks []look

// judge tells what was taken while the job was watched apart from windows, and fails where
// memory grows or is more than was promised.
func (l looks) judge() error {
	first, last := l[0], l[len(l)-1]
	var watching []reading
	most, inWindows, spent, over := 0.0, 0.0, 0.0, 0.0
	for i, now := range l {
		if now.state != agentrun.Watching {
			inWindows = max(inWindows, now.reading["worker_rss_mib"])
			continue
		}
		watching, most = append(watching, now.reading), max(most, now.reading["worker_rss_mib"])
		if i > 0 && l[i-1].state == agentrun.Watching {
			spent, over = spent+now.cpu-l[i-1].cpu, over+now.at.Sub(l[i-1].at).Seconds()
		}
	}
	fmt.Printf("%d steps seen, %d windows (%.0f MiB in them at the most), %.1f MB of raw data kept\n", last.steps-first.steps,
		last.windows-first.windows, inWindows, last.spool)
	fmt.Printf("CPU of agent and worker: %.2f %% of a core while watching, %.2f %% with windows\n\n", 100*spent/max(over, 1),
		100*(last.cpu-first.cpu)/last.at.Sub(first.at).Seconds())
	if last.steps <= first.steps {
		return errors.New("no step was seen: this is of no job")
	}
	if err := judge(os.Stdout, watching); err != nil {
		return err
	}
	if most > mostWatching {
		return fmt.Errorf("a worker that watches has %.0f MiB, and may have %d", most, mostWatching)
	}
	return nil
}
