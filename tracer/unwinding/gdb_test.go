package unwinding

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/unwind"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// The walk against gdb: gdb stops a process at random moments and says what is
// on the stack of its main thread and of another; the walk, compiled for user
// space, reads the memory of the same stopped process. Every frame's pc must
// agree, and the address where each frame ends.

// gdbStack is what testdata/native/gdbstops.py sends.
type gdbStack struct {
	RIP, RSP, RBP, R10, R13 uint64
	TID                     int
	Reason                  string
	Frames                  []struct{ PC, SP uint64 }
}

// gdbStops is how many stops to compare; EBPFPROF_GDB_STOPS=2000 is the full run.
func gdbStops(t *testing.T) int {
	stops, err := strconv.Atoi(cmp.Or(os.Getenv("EBPFPROF_GDB_STOPS"), "30"))
	if err != nil {
		t.Fatal(err)
	}
	return stops
}

func TestFramesAreThoseOfGDB(t *testing.T) {
	if testing.Short() {
		t.Skip("gdb: not in -short")
	}
	if _, err := exec.LookPath("gdb"); err != nil {
		t.Skip("no gdb here")
	}
	jobs := filepath.Join("..", "..", "testdata", "jobs")
	python := "/usr/bin/python3"
	for name, c := range map[string]struct {
		library string // some stacks must pass through it
		job     []string
	}{
		"pytorch": {"libtorch_cpu.so", []string{python, filepath.Join(jobs, "mlp.py"), "--seconds", "3600"}},
		"threads": {"libtorch_cpu.so", []string{python, filepath.Join(jobs, "transformer.py"), "--seconds", "3600", "--threads", "2"}},
		"cpython": {"python3", []string{python, filepath.Join("testdata", "busy.py")}},
		"hip":     {"libamdhip64.so", []string{python, filepath.Join("testdata", "hip.py")}},
	} {
		t.Run(name, func(t *testing.T) { compareWithGDB(t, c.library, c.job) })
	}
}

func compareWithGDB(t *testing.T, library string, job []string) {
	command := exec.Command(job[0], job[1:]...)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { command.Process.Kill(); command.Wait() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Skipf("the job can not run here: it said %q", line)
	}
	pid := command.Process.Pid
	w := walkerOf(t, pid)
	compared, identical, through, lost := 0, 0, 0, 0
	code := codeOf(t, pid)
	start, end := extentOf(t, code, library)
	wrong := map[string]int{}
	stopped(t, pid, gdbStops(t), func(stacks []gdbStack) {
		for i := range stacks {
			if !inCode(code, stacks[i].Frames) {
				lost++ // in generated code gdb guesses, and reads anything for addresses
				continue
			}
			compared++
			for _, f := range stacks[i].Frames {
				if f.PC >= start && f.PC < end {
					through++
					break
				}
			}
			if difference := w.differs(&stacks[i]); difference == "" {
				identical++
			} else {
				wrong[difference]++
			}
		}
	})
	t.Logf("%d of %d stacks are those of gdb; %d pass through %s; in %d more gdb has frames where nothing is mapped", identical, compared,
		through, library, lost)
	if through == 0 {
		t.Fatalf("no stack passes through %s", library)
	}
	if identical*1000 < compared*999 {
		t.Errorf("%d of %d stacks differ from gdb's", compared-identical, compared)
	}
	for difference, count := range wrong {
		t.Logf("%d times: %s", count, difference)
	}
}

// codeOf is where code is mapped in a process.
func codeOf(t *testing.T, pid int) []process.Code {
	t.Helper()
	p, err := process.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	code, err := p.Code()
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func extentOf(t *testing.T, code []process.Code, library string) (start, end uint64) {
	t.Helper()
	for _, c := range code {
		if c.Library != nil && strings.HasPrefix(c.Library.Name(), library) {
			return c.Start, c.End
		}
	}
	t.Fatalf("no %s in the job", library)
	return 0, 0
}

// inCode reports whether every frame is somewhere in code.
func inCode(code []process.Code, frames []struct{ PC, SP uint64 }) bool {
	for _, f := range frames {
		if !slices.ContainsFunc(code, func(c process.Code) bool { return f.PC >= c.Start && f.PC < c.End }) {
			return false
		}
	}
	return true
}

// walkerOf is the walk with the tables of a process.
func walkerOf(t *testing.T, pid int) *walker {
	t.Helper()
	w := newWalker(t, "x86")
	home, _ := os.UserHomeDir()
	cache := cmp.Or(os.Getenv("EBPFPROF_CACHE"), filepath.Join(home, ".cache", "ebpfprof"))
	u := newUnwinder(w, Options{Cache: unwind.Cache{Directory: filepath.Join(cache, "unwind")}})
	t.Cleanup(u.Close)
	p, err := process.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := u.AddProcess(p); err != nil {
		t.Fatal(err)
	}
	u.Wait()
	status, _ := u.Status(pid)
	for _, f := range status.Files {
		if f.State != Ready {
			t.Logf("%s is %s: %v", f.Path, f.State, f.Reason)
		}
	}
	w.send()
	w.say('d', uint32(pid))
	return w
}

// differs says how the walk's stack is not gdb's, "" if it is.
func (w *walker) differs(want *gdbStack) string {
	var start bpf.NativeWalkNativeTaken
	s := &start.Start
	s.Pc, s.Sp, s.Fp, s.R10, s.R13 = want.RIP, want.RSP, want.RBP, want.R10, want.R13
	stack := w.walk(start)
	var pcs []uint64
	for _, f := range want.Frames {
		pcs = append(pcs, f.PC)
	}
	got := stack.pcs()
	if !slices.Equal(got, pcs) {
		same := 0
		for same < min(len(got), len(pcs)) && got[same] == pcs[same] {
			same++
		}
		at := uint64(0)
		if same > 0 {
			at = got[same-1]
		}
		return fmt.Sprintf("the same up to frame %d at %#x, then %#x (%v); gdb has %#x (%s)",
			same, at, got[same:min(same+2, len(got))], Outcome(stack.Outcome), pcs[same:min(same+2, len(pcs))], want.Reason)
	}
	for i := range got[:len(got)-1] {
		if cfa := stack.SP + uint64(stack.Frame[i].CFA); cfa != want.Frames[i+1].SP && stack.Frame[i].CFA != 0xffffffff {
			return fmt.Sprintf("frame %d ends at %#x, gdb says %#x", i, cfa, want.Frames[i+1].SP)
		}
	}
	return ""
}

// stopped has gdb stop a process and calls compare at each stop.
func stopped(t *testing.T, pid, stops int, compare func([]gdbStack)) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "stops")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	script, err := filepath.Abs(filepath.Join("..", "..", "testdata", "native", "gdbstops.py"))
	if err != nil {
		t.Fatal(err)
	}
	gdb := exec.Command("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load no", "-p", strconv.Itoa(pid),
		"-x", script)
	gdb.Env = append(os.Environ(), "EBPFPROF_STOPS_SOCKET="+socket, "EBPFPROF_STOPS="+strconv.Itoa(stops))
	var said lockedBuffer
	gdb.Stdout, gdb.Stderr = &said, &said
	if err := gdb.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { err := gdb.Wait(); listener.Close(); ended <- err }()
	connection, err := listener.Accept()
	if err != nil {
		t.Fatalf("gdb did not attach: %s", said.String())
	}
	defer connection.Close()
	lines := bufio.NewScanner(connection)
	lines.Buffer(nil, 1<<20)
	var stacks []gdbStack
	interrupt := func() {
		time.Sleep(time.Duration(1000+rand.IntN(10000)) * time.Microsecond)
		_ = syscall.Kill(pid, syscall.SIGINT)
	}
	interrupt()
	for lines.Scan() {
		if len(lines.Bytes()) > 0 {
			var s gdbStack
			if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
				t.Fatal(err)
			}
			stacks = append(stacks, s)
			continue
		}
		compare(stacks)
		stacks = nil
		fmt.Fprintln(connection)
		interrupt()
	}
	if err := <-ended; err != nil {
		t.Errorf("gdb: %v\n%s", err, said.String())
	}
}
