package python

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/pythons"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// job is a running testdata/jobs/stacks.py.
type job struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Scanner
}

func startJob(t *testing.T, python pythons.Python, arguments ...string) *job {
	t.Helper()
	if len(arguments) == 0 {
		arguments = []string{"../../testdata/jobs/stacks.py"}
	}
	cmd := exec.Command(python.Path, arguments...)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "PYTHONIOENCODING=utf-8")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		end := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		end.Stop()
	})
	j := &job{t, cmd, stdin, bufio.NewScanner(stdout)}
	j.out.Buffer(nil, 64<<20)
	if line := j.line(); line != "ready" {
		t.Fatalf("the job says %q", line)
	}
	return j
}

func (j *job) say(line string) {
	j.t.Helper()
	if _, err := fmt.Fprintln(j.stdin, line); err != nil {
		j.t.Fatal(err)
	}
}

func (j *job) line() string {
	j.t.Helper()
	if !j.out.Scan() {
		j.t.Fatalf("the job ended: %v", j.out.Err())
	}
	return j.out.Text()
}

// open finds the interpreter of a process.
func openPID(t *testing.T, pid int) *Interpreter {
	t.Helper()
	p, err := process.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := p.Libraries()
	if err != nil {
		t.Fatal(err)
	}
	i, err := Open(p, libraries)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	return i
}

// frame is one that the job or the resolver saw.
type frame struct {
	function, file string
	line           int
}

func (f frame) String() string { return fmt.Sprintf("%s (%s:%d)", f.function, f.file, f.line) }

// known is a stack that the job noted.
type known struct {
	label  string
	frames []frame
}

// noted parses what the job prints: the stacks of each thread, in order.
func noted(t *testing.T, line string) map[uint32][]known {
	t.Helper()
	var byThread map[uint32][][2]json.RawMessage
	if err := json.Unmarshal([]byte(line), &byThread); err != nil {
		t.Fatalf("%v: %.200s", err, line)
	}
	all := map[uint32][]known{}
	for tid, stacks := range byThread {
		for _, s := range stacks {
			var k known
			var frames [][3]any
			if err := json.Unmarshal(s[0], &k.label); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(s[1], &frames); err != nil {
				t.Fatal(err)
			}
			for _, f := range frames {
				k.frames = append(k.frames, frame{f[0].(string), f[1].(string), int(f[2].(float64))})
			}
			all[tid] = append(all[tid], k)
		}
	}
	return all
}

func format(frames []frame) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "\n\t%s", f)
	}
	return b.String()
}
