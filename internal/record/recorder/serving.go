package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	beside "github.com/ebpfprof/ebpfprof/internal/page/progress"
	"github.com/ebpfprof/ebpfprof/internal/record/user"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer"
)

// How often the growing tables get a new file where somebody looks on. Rotations of a long recording are rarer, since
// each file costs every reader a little.
const (
	watchedRotation = 2 * time.Second
	rotationShare   = 1.0 / 300
)

// serving is the page of a recording that is being made: a process of its own, which never runs as root.
type serving struct {
	command *exec.Cmd
	lines   io.WriteCloser // its end is ours, for the page
	ended   chan struct{}  // the page has
	over    chan struct{}  // the recording is
}

// viewer is whom the page runs as: the user behind sudo, nobody for plain root, nil for the caller.
func viewer(access output.Access) (*user.User, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	if u := user.Invoker(); u != nil {
		return u, nil
	}
	nobody, err := user.Nobody()
	if err != nil {
		return nil, fmt.Errorf("--serve: the page does not run as root, and there is no user nobody for it: call ebpfprof with sudo (%w)", err)
	}
	gid, group := nobody.Group()
	if access.Mode&0o004 == 0 && (access.Mode&0o040 == 0 || access.GID != gid) {
		return nil, cli.Usagef("--serve: started by root without sudo, the page runs as user %s, who cannot read a dataset of mode %04o: "+
			"add --mode 0640:%s, or call ebpfprof with sudo as the user who looks at it", nobody.Name(), access.Mode, group)
	}
	return nobody, nil
}

// serveIf prepares a recording for a page, where one is asked for.
func (r *recorder) serveIf(asked, rotates bool) error {
	if !asked {
		return nil
	}
	if !r.reading.Serves {
		return cli.Usagef("--serve: this program only records; ebpfprof serve shows the dataset where ebpfprof is installed")
	}
	if _, err := viewer(r.access); err != nil {
		return err
	}
	r.serves = true
	if !rotates {
		r.rotate = watchedRotation
	}
	return nil
}

func (r *recorder) rotateShare() float64 {
	if r.serves {
		return rotationShare
	}
	return 0
}

// serve starts the page of a dataset that can be read from now on.
func (r *recorder) serve() (*serving, error) {
	if !r.serves {
		return nil, nil
	}
	as, err := viewer(r.access)
	if err != nil {
		return nil, err
	}
	// By what runs, which the user may not reach by its path.
	command := exec.Command("/proc/self/exe", "serve", "--recorder", "--", r.output)
	command.Args[0] = os.Args[0]
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	// A group of its own: the terminal's Ctrl-C ends the recording and not the page.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	as.Apart(command)
	lines, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the page of --serve: %w", err)
	}
	_ = unix.Setpriority(unix.PRIO_PGRP, command.Process.Pid, 19) // the job's CPUs are the job's
	s := &serving{command: command, lines: lines, ended: make(chan struct{}), over: make(chan struct{})}
	go func() {
		_ = command.Wait() // it says itself what is wrong
		close(s.ended)
	}()
	if as != nil {
		fmt.Fprintf(os.Stderr, "the page runs as user %s\n", as.Name())
	}
	return s, nil
}

// report tells the page every second how the recording goes, until the recording is over.
func (s *serving) report(session *tracer.Session, dataset *output.Dataset) {
	if s == nil {
		return
	}
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		out := json.NewEncoder(s.lines)
		var last beside.Line
		at := time.Now()
		for {
			select {
			case <-s.over:
				return
			case <-s.ended:
				return
			case now := <-ticker.C:
				line := lineOf(session.Stats(), written(dataset))
				line.since(last, now.Sub(at))
				if out.Encode(line.Line) != nil {
					return // the page is gone
				}
				last, at = line.Line, now
			}
		}
	}()
}

type reported struct{ beside.Line }

func lineOf(stats tracer.Stats, bytes int64) *reported {
	return &reported{beside.Line{Events: stats.Spans + stats.Memory, Samples: stats.Samples, Hits: stats.Probes.Hits, Bytes: bytes,
		Lost: stats.Lost}}
}

// since adds the rates since another line.
func (r *reported) since(before beside.Line, passed time.Duration) {
	if seconds := passed.Seconds(); seconds > 0 {
		r.PerSecond = float64(r.Events-min(r.Events, before.Events)) / seconds
		r.HitsPerSecond = float64(r.Hits-min(r.Hits, before.Hits)) / seconds
	}
}

// stay leaves the page to its reader until Ctrl-C.
func (s *serving) stay() {
	if s == nil {
		return
	}
	select {
	case <-s.ended:
		return
	default:
	}
	fmt.Fprintln(os.Stderr, "the page stays until Ctrl-C")
	ctx, stop := untilSignal(context.Background(), nil)
	defer stop()
	select {
	case <-s.ended:
	case <-ctx.Done():
	}
}

// end ends the page.
func (s *serving) end() {
	if s == nil {
		return
	}
	close(s.over)
	_ = s.lines.Close()
	<-s.ended
}
