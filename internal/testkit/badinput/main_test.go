package badinput

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/features"
)

// Exit codes as documented in the README.
const (
	ok           = 0
	failed       = 1
	usage        = 2
	notPermitted = 3
	unsupported  = 4
	nothing      = 5

	// Of run, which otherwise returns the command's.
	notStarted    = 125
	notExecutable = 126
	notFound      = 127
)

// patience is how long any one command may take: past it the test fails for a hang.
const patience = 5 * time.Minute

var ebpfprof string

func TestMain(m *testing.M) {
	// Under nohup SIGHUP is ignored, in all that is started from here too. What is
	// caught is not inherited: the programs begin as on a terminal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "badinput-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		os.Chmod(dir, 0o755) // other users run it too
		ebpfprof = filepath.Join(dir, "ebpfprof")
		if out, err := exec.Command("go", "build", "-o", ebpfprof, "../../../cmd/ebpfprof").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

func needKernel(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("kernel: not in -short")
	}
	if os.Geteuid() != 0 {
		t.Skip("kernel: needs root")
	}
	if err := features.CheckNamespaces(); err != nil {
		t.Skipf("kernel: %v", err)
	}
	if err := features.Probe().Check(); err != nil {
		t.Skipf("kernel: %v", err)
	}
}

// result is how a command ended.
type result struct {
	code           int
	stdout, stderr string
}

// run runs a command to its end in an empty directory of its own.
func run(t *testing.T, argv ...string) result {
	t.Helper()
	return runIn(t, t.TempDir(), argv...)
}

func runIn(t *testing.T, dir string, argv ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.Stdout, c.Stderr, c.WaitDelay = dir, &stdout, &stderr, time.Second
	err := c.Run()
	if ctx.Err() != nil {
		t.Fatalf("%q hangs\n%s", argv, stderr.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", argv, err)
	}
	return result{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// complaint is the one line in which the tool says what is wrong.
func (r result) complaint() string {
	var found []string
	for line := range strings.Lines(r.stderr) {
		if strings.HasPrefix(line, "ebpfprof: ") {
			found = append(found, strings.TrimSpace(strings.TrimPrefix(line, "ebpfprof: ")))
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// check fails unless the command ended with the code and one sentence that has
// these words in it, and without a traceback.
func (r result) check(t *testing.T, code int, words ...string) {
	t.Helper()
	said := r.complaint()
	good := r.code == code && (said != "" || code == ok) && len(said) < 400 && !strings.Contains(r.stderr, "goroutine ")
	for _, word := range words {
		good = good && strings.Contains(said, word)
	}
	if !good {
		t.Errorf("exit code %d, want %d and one sentence with %q\nstderr: %s\nstdout: %s", r.code, code, words, r.stderr, r.stdout)
	}
}

// checkAlone is check for a command that says nothing else and writes nothing.
func (r result) checkAlone(t *testing.T, dir string, code int, words ...string) {
	t.Helper()
	r.check(t, code, words...)
	if r.stdout != "" || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("more than one sentence\nstderr: %s\nstdout: %s", r.stderr, r.stdout)
	}
	checkEmpty(t, dir)
}

func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s was left behind", e.Name())
	}
}

// background is a command that runs beside the test.
type background struct {
	*exec.Cmd
	mu             sync.Mutex
	stdout, stderr bytes.Buffer
	done           chan struct{}
}

// start runs a command until it ends or the test does.
func start(t *testing.T, environment []string, argv ...string) *background {
	t.Helper()
	b := &background{Cmd: exec.Command(argv[0], argv[1:]...), done: make(chan struct{})}
	b.Stdout, b.Stderr = &locked{b, &b.stdout}, &locked{b, &b.stderr}
	b.Env = append(os.Environ(), environment...)
	b.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { b.Wait(); close(b.done) }()
	t.Cleanup(func() {
		syscall.Kill(-b.Process.Pid, syscall.SIGKILL)
		<-b.done
	})
	return b
}

type locked struct {
	b  *background
	to *bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	return l.to.Write(p)
}

func (b *background) result() result {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := result{stdout: b.stdout.String(), stderr: b.stderr.String()}
	if b.ProcessState != nil {
		r.code = b.ProcessState.ExitCode()
	}
	return r
}

// until waits for a text in what the command prints.
func (b *background) until(t *testing.T, text string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		r := b.result()
		if strings.Contains(r.stdout, text) || strings.Contains(r.stderr, text) {
			return
		}
		select {
		case <-b.done:
			if r = b.result(); !strings.Contains(r.stdout+r.stderr, text) {
				t.Fatalf("ended without %q\nstdout: %s\nstderr: %s", text, r.stdout, r.stderr)
			}
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %q\nstdout: %s\nstderr: %s", text, r.stdout, r.stderr)
		}
	}
}

// end waits for the command to end.
func (b *background) end(t *testing.T) result {
	t.Helper()
	select {
	case <-b.done:
		return b.result()
	case <-time.After(patience):
		r := b.result()
		t.Fatalf("%q hangs\nstdout: %s\nstderr: %s", b.Args, r.stdout, r.stderr)
		return result{}
	}
}

func (b *background) alive() bool {
	select {
	case <-b.done:
		return false
	default:
		return true
	}
}
