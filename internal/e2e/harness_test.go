package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/features"
)

// One build and one directory for the whole run: recordings are shared between
// tests.
var (
	scratch  string
	ebpfprof string
	build    = sync.OnceValue(func() error {
		ebpfprof = filepath.Join(scratch, "ebpfprof")
		out, err := exec.Command("go", "build", "-o", ebpfprof, "../../cmd/ebpfprof").CombinedOutput()
		if err != nil {
			return fmt.Errorf("building ebpfprof: %w\n%s", err, out)
		}
		return nil
	})
)

func TestMain(m *testing.M) {
	flag.Parse()
	letAllBegin()
	var err error
	if scratch, err = os.MkdirTemp("", "ebpfprof-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if os.Getenv("EBPFPROF_KEEP") == "" {
		os.RemoveAll(scratch)
	} else {
		fmt.Fprintln(os.Stderr, "kept", scratch)
	}
	os.Exit(code)
}

// needKernel skips where nothing can be probed, and has the binary built.
func needKernel(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("kernel: not in -short")
	}
	if os.Geteuid() != 0 {
		t.Skip("kernel: needs root")
	}
	if err := features.Probe().Check(); err != nil {
		t.Skipf("kernel: %v", err)
	}
	if err := build(); err != nil {
		t.Fatal(err)
	}
}

// torch is a PyTorch whose jobs are traced.
type torch struct {
	name    string
	python  string
	install string // what installs it
	library string // how the path of its libtorch_cpu ends
}

var (
	debianTorch = torch{"torch1.13", "/usr/bin/python3", "make deps", "-linux-gnu/libtorch_cpu.so"}
	pypiTorch   = torch{"torch2.15", filepath.Join(cache(), "torch-venv", "bin", "python"), "make torch", "torch/lib/libtorch_cpu.so"}
)

func cache() string {
	if dir := os.Getenv("EBPFPROF_CACHE"); dir != "" {
		return dir
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".cache", "ebpfprof")
}

func (v torch) need(t *testing.T) {
	t.Helper()
	needKernel(t)
	find := "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
	if err := exec.Command(v.python, "-c", find).Run(); err != nil {
		t.Skipf("%s is not installed: run `%s`", v.name, v.install)
	}
	once, _ := warmed.LoadOrStore(v.name, &sync.Once{})
	once.(*sync.Once).Do(func() { v.warm(t) })
}

// warmed has a sync.Once for each torch.
var warmed sync.Map

// warm has the libraries planned and their unwind tables compiled, which a new
// build does once and keeps. A job started under `run` may make its first calls
// meanwhile, and they are not recorded: the tests that count come after. On a busy
// machine that takes long: it is done when a job that ends after some seconds was
// probed before.
func (v torch) warm(t *testing.T) {
	t.Helper()
	for _, seconds := range []int{3, 10, 60} {
		dataset := filepath.Join(scratch, "warm-"+v.name)
		script := fmt.Sprintf("import torch, time; time.sleep(%d); torch.ones(3) + 1", seconds)
		c := exec.Command(ebpfprof, "run", "--quiet", "--budget", "off", "--output", dataset, "--", v.python, "-c", script)
		out, err := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); err != nil && code != 5 { // 5: no call was recorded
			t.Fatalf("warming up: %v\n%s", err, out)
		}
		seen := err == nil && (&recording{dataset: dataset}).number(t, "SELECT count(*) FROM span WHERE layer = 'op' AND name = 'aten::ones'") > 0
		os.RemoveAll(dataset)
		if seen {
			return
		}
	}
	t.Fatalf("%s: no call of a job that makes one after a minute was recorded", v.name)
}

var eachVersion = []torch{debianTorch, pypiTorch}

// eachTorch runs a test under both, with the machine alone.
func eachTorch(t *testing.T, test func(*testing.T, torch)) {
	t.Helper()
	needKernel(t)
	for _, v := range eachVersion {
		t.Run(v.name, func(t *testing.T) {
			v.need(t)
			test(t, v)
		})
	}
}

// besideEachTorch runs a test under both, beside others and itself.
func besideEachTorch(t *testing.T, l load, test func(*testing.T, torch), libraries ...string) {
	t.Helper()
	needKernel(t)
	t.Parallel()
	for _, v := range eachVersion {
		t.Run(v.name, func(t *testing.T) {
			v.beside(t, l, libraries...)
			test(t, v)
		})
	}
}

// beside lets a test trace this torch, and other libraries, beside others.
func (v torch) beside(t *testing.T, l load, libraries ...string) {
	t.Helper()
	needKernel(t)
	beside(t, l, append(libraries, v.name)...)
	v.need(t)
}

// job is a command line under testdata/jobs.
func (v torch) job(script string, args ...string) []string {
	return append([]string{v.python, filepath.Join("..", "..", "testdata", "jobs", script)}, args...)
}

// patience is how long any one command may take before the test gives up on it.
const patience = 3 * time.Minute

// command is a process whose output is kept and whose whole process group is
// killed when the test ends.
type command struct {
	*exec.Cmd
	stdin io.WriteCloser
	mu    sync.Mutex
	out   []string      // lines of standard output
	news  chan struct{} // closed and replaced with each line
	errs  bytes.Buffer
	done  chan struct{}
}

func start(t *testing.T, argv ...string) *command {
	t.Helper()
	c, err := launch(nil, argv...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

func launch(environment []string, argv ...string) (*command, error) {
	c := &command{Cmd: exec.Command(argv[0], argv[1:]...), news: make(chan struct{}), done: make(chan struct{})}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Env = append(os.Environ(), environment...)
	c.Stderr = &lockedBuffer{c: c}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.stdin, err = c.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	go c.read(out)
	return c, nil
}

func (c *command) read(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			c.mu.Lock()
			c.out = append(c.out, strings.TrimSuffix(line, "\n"))
			c.tell()
			c.mu.Unlock()
		}
		if err != nil {
			break
		}
	}
	c.Cmd.Wait()
	close(c.done)
}

// tell wakes whoever waits for output; c.mu is held.
func (c *command) tell() {
	close(c.news)
	c.news = make(chan struct{})
}

type lockedBuffer struct{ c *command }

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.c.tell()
	return b.c.errs.Write(p)
}

func (c *command) kill() {
	select {
	case <-c.done:
	default:
		syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		<-c.done
	}
}

// until waits for the output to fulfil a condition, the process to end, or patience to.
func (c *command) until(t *testing.T, what string, met func(out []string, errs string) bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		c.mu.Lock()
		ok, news := met(c.out, c.errs.String()), c.news
		c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-news:
		case <-c.done:
			c.mu.Lock()
			ok = met(c.out, c.errs.String())
			c.mu.Unlock()
			if !ok {
				t.Fatalf("%s ended before %s\n%s", c, what, c.transcript())
			}
			return
		case <-deadline:
			t.Fatalf("%s: no %s in %s\n%s", c, what, patience, c.transcript())
		}
	}
}

func (c *command) line(t *testing.T, prefix string) {
	t.Helper()
	c.until(t, fmt.Sprintf("%q", prefix), func(out []string, _ string) bool { return hasLine(out, prefix) })
}

func hasLine(lines []string, prefix string) bool {
	for _, l := range lines {
		if strings.HasPrefix(l, prefix) {
			return true
		}
	}
	return false
}

// goOn lets a job go on that was started with --wait.
func (c *command) goOn(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(c.stdin, "\n"); err != nil {
		t.Fatal(err)
	}
}

// readyPID is the pid that a job told when it was ready.
func (c *command) readyPID(t *testing.T) (pid int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range c.out {
		if n, _ := fmt.Sscanf(line, "ready %d", &pid); n == 1 {
			return pid
		}
	}
	t.Fatalf("%s told no pid", c)
	return 0
}

// wait returns the exit code, or minus the signal.
func (c *command) wait() (int, error) {
	select {
	case <-c.done:
	case <-time.After(patience):
		c.kill()
		return 0, fmt.Errorf("%s: still running after %s\n%s", c, patience, c.transcript())
	}
	status := c.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return -int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

func (c *command) transcript() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.out, "\n") + "\n" + c.errs.String()
}

// runJob runs a job without any tracer.
func runJob(t *testing.T, argv ...string) truth {
	t.Helper()
	c := start(t, argv...)
	code, err := c.wait()
	if err == nil && code != 0 {
		err = fmt.Errorf("%s: exit code %d\n%s", c, code, c.transcript())
	}
	told, truthErr := c.truth()
	if err := errors.Join(err, truthErr); err != nil {
		t.Fatal(err)
	}
	return told
}

// record runs a command under `ebpfprof run`.
func record(flags []string, argv ...string) (*recording, error) {
	dataset, err := os.MkdirTemp(scratch, "dataset-")
	if err != nil {
		return nil, err
	}
	line := append([]string{ebpfprof, "run", "--json", "--output", dataset}, flags...)
	c, err := launch(nil, append(append(line, "--"), argv...)...)
	if err != nil {
		return nil, err
	}
	defer c.kill()
	code, err := c.wait()
	if err == nil && code != 0 {
		err = fmt.Errorf("%s: exit code %d\n%s", c, code, c.transcript())
	}
	if err != nil {
		return nil, err
	}
	r := &recording{dataset: dataset, tracer: c}
	if r.truth, err = c.truth(); err != nil && !errors.Is(err, errNoTruth) {
		return nil, err
	}
	return r, r.summarize(c)
}

func mustRecord(t *testing.T, flags []string, argv ...string) *recording {
	t.Helper()
	r, err := record(flags, argv...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.tracer.explain(t, r) })
	return r
}

// shared makes a recording that several tests look at, once.
func shared(t *testing.T, flags []string, argv ...string) *recording {
	t.Helper()
	key := strings.Join(append(append([]string{}, flags...), argv...), "\x00")
	made, _ := recordings.LoadOrStore(key, sync.OnceValues(func() (*recording, error) { return record(flags, argv...) }))
	r, err := made.(func() (*recording, error))()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var recordings sync.Map

// attached is a running `ebpfprof attach`.
type attached struct {
	*command
	dataset string
}

// attach begins to record processes and returns once the probes are in.
func attach(t *testing.T, flags []string, pids ...int) *attached {
	t.Helper()
	dataset, err := os.MkdirTemp(scratch, "dataset-")
	if err != nil {
		t.Fatal(err)
	}
	line := append([]string{ebpfprof, "attach", "--output", dataset}, flags...)
	for _, pid := range pids {
		line = append(line, "--pid", fmt.Sprint(pid))
	}
	a := &attached{start(t, line...), dataset}
	a.until(t, "word that it is attached", func(_ []string, errs string) bool { return strings.Contains(errs, "attached in ") })
	return a
}

// finish waits for the tracer to end, which it does with the job.
func (a *attached) finish(t *testing.T) *recording {
	t.Helper()
	code, err := a.wait()
	if err == nil && code != 0 {
		err = fmt.Errorf("%s: exit code %d\n%s", a, code, a.transcript())
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{dataset: a.dataset}
	t.Cleanup(func() { a.explain(t, r) })
	return r
}

// interrupt is Ctrl-C.
func (a *attached) interrupt(t *testing.T) *recording {
	t.Helper()
	a.Process.Signal(os.Interrupt)
	return a.finish(t)
}

// startJob starts a job, to wait after its warm-up.
func startJob(t *testing.T, argv ...string) *command {
	t.Helper()
	c := start(t, append(argv, "--wait")...)
	c.line(t, "ready ")
	return c
}

// finishJob waits for a job to end well and returns what it says of itself.
func (c *command) finishJob(t *testing.T) truth {
	t.Helper()
	code, err := c.wait()
	if err == nil && code != 0 {
		err = fmt.Errorf("%s: exit code %d\n%s", c, code, c.transcript())
	}
	told, truthErr := c.truth()
	if err := errors.Join(err, truthErr); err != nil {
		t.Fatal(err)
	}
	return told
}

// profile runs a job under torch.profiler and reads what that wrote.
func profile[T any](t *testing.T, argv ...string) (into T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "profile.json")
	runJob(t, append(argv, "--profile", file)...)
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, &into)
	}
	if err != nil {
		t.Fatal(err)
	}
	return into
}

// alone waits until no process maps this libtorch, which other work on the
// machine may do, and reports whether that came true.
func (v torch) alone(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		pids, _ := filepath.Glob("/proc/[0-9]*/maps")
		mapped := false
		for _, maps := range pids {
			content, _ := os.ReadFile(maps)
			mapped = mapped || bytes.Contains(content, []byte(v.library))
		}
		if !mapped {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
