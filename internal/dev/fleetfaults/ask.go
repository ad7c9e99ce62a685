package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// running is a job.
type running struct {
	command *exec.Cmd
	lines   *bufio.Scanner
	pids    []int // by rank
	name    string
}

// start starts the job and waits until it trains.
func (s *recordings) start(ctx context.Context, inJob string, after int) (*running, error) {
	s.made++
	j := &running{name: fmt.Sprintf("faults-%d-%d", os.Getpid(), s.made)}
	j.command = exec.CommandContext(ctx, s.python, s.job, "--fault", inJob, "--after", strconv.Itoa(after), "--ranks", strconv.Itoa(ranks),
		"--victim", strconv.Itoa(victim), "--seconds", "600", "--job", j.name)
	j.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := j.command.StdoutPipe()
	if err == nil {
		err = j.command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting the job: %w", err)
	}
	j.lines = bufio.NewScanner(out)
	for j.lines.Scan() {
		line := j.lines.Text()
		if started, ok := strings.CutPrefix(line, "started "); ok {
			for _, field := range strings.Fields(started) {
				pid, err := strconv.Atoi(field)
				if err != nil {
					return nil, fmt.Errorf("the job says %q", line)
				}
				j.pids = append(j.pids, pid)
			}
		}
		if line == "running" && len(j.pids) == ranks {
			return j, nil
		}
	}
	j.end()
	return nil, fmt.Errorf("the job ended before it trained")
}

// end kills the job, whatever it is in: its ranks may be stopped.
func (j *running) end() {
	_ = syscall.Kill(-j.command.Process.Pid, syscall.SIGKILL)
	_ = j.command.Wait()
}

// answer is what is read of `fleet report --json`.
type answer struct {
	Verdict  string    `json:"verdict"`
	Findings []finding `json:"findings"`
}

type finding struct {
	Kind     string                 `json:"kind"`
	Function string                 `json:"function"`
	Caller   string                 `json:"caller"` // of an operator
	Workers  []struct{ Rank int32 } `json:"workers"`
	Cause    struct {
		Name    string
		Symptom bool
	} `json:"cause"`
}

// told are the findings that accuse a worker.
func (a *answer) told() (told []finding) {
	for _, f := range a.Findings {
		if f.Kind == "special" && !f.Cause.Symptom && len(f.Workers) > 0 {
			told = append(told, f)
		}
	}
	return told
}

// attach is the beginning of a command that records the job's ranks.
func (j *running) attach(dataset string) []string {
	args := []string{"attach", "--quiet", "--output", dataset}
	for _, pid := range j.pids {
		args = append(args, "--pid", strconv.Itoa(pid))
	}
	return args
}

// report records the job for a window and asks who is slow.
func (s *recordings) report(ctx context.Context, j *running) (*answer, error) {
	dataset := filepath.Join(s.dir, j.name)
	store := dataset + ".store"
	defer os.RemoveAll(dataset)
	defer os.RemoveAll(store)
	if _, err := s.command(ctx, append(j.attach(dataset), "--duration", s.window.String())...); err != nil {
		return nil, err
	}
	if _, err := s.command(ctx, "fleet", "upload", "--store", store, "--job", j.name, dataset); err != nil {
		return nil, err
	}
	out, err := s.command(ctx, "fleet", "report", store, "--json")
	if err != nil {
		return nil, err
	}
	a := &answer{}
	if err := json.Unmarshal(out, a); err != nil {
		return nil, fmt.Errorf("fleet report --json: %w", err)
	}
	return a, nil
}

// watchHealthy asks for windows of one healthy job, and returns who was accused.
func (s *recordings) watchHealthy(ctx context.Context) (accused []string, asked int, err error) {
	fmt.Fprintln(os.Stderr, "healthy")
	j, err := s.start(ctx, "none", 0)
	if err != nil {
		return nil, 0, err
	}
	defer func() { j.end() }()
	for asked < s.healthy {
		a, err := s.report(ctx, j)
		if err != nil {
			return accused, asked, err
		}
		asked++
		if told := a.told(); len(told) > 0 {
			accused = append(accused, fmt.Sprintf("window %d: %s", asked, a.Verdict))
		}
		if asked%10 == 0 {
			fmt.Fprintf(os.Stderr, "%d of %d windows, %d name a worker\n", asked, s.healthy, len(accused))
		}
		if asked%20 == 0 && asked < s.healthy { // a job lasts ten minutes
			j.end()
			if j, err = s.start(ctx, "none", 0); err != nil {
				return accused, asked, err
			}
		}
	}
	return accused, asked, nil
}

// hung is what is read of `fleet hang --json`: what waits in collectives that were seen to
// begin, and, by stacks alone, in others.
type hung struct {
	Groups []struct {
		Mismatch bool       `json:"mismatch"`
		Missing  []hungRank `json:"missing"`
		Waiting  []hungRank `json:"waiting"`
	} `json:"groups"`
	Unseen struct {
		Waiting   []hungRank `json:"waiting"`
		Others    []hungRank `json:"others"`
		Different bool       `json:"different"`
	} `json:"unseen"`
}

type hungRank struct {
	Rank    int               `json:"rank"`
	Threads []json.RawMessage `json:"threads"`
}

// hangWait is how long a job is given to hang and to be seen hanging.
const hangWait = 40 * time.Second

// hangs records a job that comes to hang, and asks who is missing until an answer comes.
func (s *recordings) hangs(ctx context.Context, f *fault, j *running, o *outcome) error {
	dataset := filepath.Join(s.dir, j.name)
	defer os.RemoveAll(dataset)
	recorder := exec.CommandContext(ctx, s.tracer, j.attach(dataset)...)
	recorder.Cancel = func() error { return recorder.Process.Signal(os.Interrupt) }
	if err := recorder.Start(); err != nil {
		return err
	}
	defer func() {
		_ = recorder.Process.Signal(os.Interrupt)
		_ = recorder.Wait()
	}()
	if err := sleep(ctx, s.window/2); err != nil {
		return err
	}
	begin := f.outside
	if begin == nil {
		begin = asked
	}
	undo, err := begin(j.pids[victim])
	if err != nil {
		return err
	}
	defer undo()
	for begun := time.Now(); time.Since(begun) < hangWait; {
		if err := sleep(ctx, 2*time.Second); err != nil {
			return err
		}
		out, err := s.command(ctx, "fleet", "hang", dataset, "--json")
		if err != nil {
			continue // its first files are not there yet
		}
		var h hung
		if err := json.Unmarshal(out, &h); err != nil {
			return fmt.Errorf("fleet hang --json: %w", err)
		}
		if o.readHang(f, &h) {
			o.said = fmt.Sprintf("named %.0f s after the job began to hang, at most", time.Since(begun).Seconds())
			return nil
		}
	}
	return nil
}

// readHang finds the fault in an answer of fleet hang, with the stacks of those who wait.
func (o *outcome) readHang(f *fault, h *hung) bool {
	for _, g := range h.Groups {
		if len(g.Waiting) == 0 && !g.Mismatch {
			continue
		}
		if g.Mismatch {
			o.first = "mismatch"
		}
		if f.hang == "mismatch" && g.Mismatch && stand(g.Waiting) || o.alone(f, g.Missing, g.Waiting) {
			o.place = 1
			return true
		}
	}
	if h.Unseen.Different {
		o.first = "mismatch, by stacks"
		if f.hang == "mismatch" && stand(h.Unseen.Waiting) {
			o.place = 1
			return true
		}
	}
	if len(h.Unseen.Waiting) > 0 && o.alone(f, h.Unseen.Others, h.Unseen.Waiting) {
		o.place = 1
		return true
	}
	return false
}

// alone reports whether the victim, and no other, is named as the one that keeps the others waiting.
func (o *outcome) alone(f *fault, missing, waiting []hungRank) bool {
	if len(missing) == 0 {
		return false
	}
	o.first = fmt.Sprintf("missing, rank %d", missing[0].Rank)
	return f.hang == "missing" && len(missing) == 1 && missing[0].Rank == victim && stand(missing) && stand(waiting)
}

// stand reports whether the place of each of them is given.
func stand(ranks []hungRank) bool {
	return !slices.ContainsFunc(ranks, func(r hungRank) bool { return len(r.Threads) == 0 })
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
