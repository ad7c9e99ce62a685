package doctor

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/stacks"
	"github.com/ebpfprof/ebpfprof/tracer/unwinding"
)

// bare has no .eh_frame of its own, and a page of code that is in no file.
const bareProgram = `#include <stdio.h>
#include <sys/mman.h>
int main(void) {
	void *page = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	puts(page == MAP_FAILED ? "refused" : "ready");
	fflush(stdout);
	return getchar();
}
`

// startBare compiles and starts the program, and waits until its page is there.
func startBare(t *testing.T) *process.Process {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc here")
	}
	path := filepath.Join(t.TempDir(), "bare")
	c := exec.Command("gcc", "-O1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-o", path, "-x", "c", "-")
	c.Stdin = strings.NewReader(bareProgram)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command("objcopy", "--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr", path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	job := exec.Command(path)
	stdin, err := job.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := job.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); job.Wait() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		t.Skipf("%q, %v", line, err)
	}
	p, err := process.Open(job.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDoctorSaysWhyNativeFramesAreMissing(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	p := startBare(t)
	libraries, err := p.Libraries()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]check{}
	for _, k := range nativeChecks(p, libraries) {
		found[k.Name] = k
	}
	for name, want := range map[string]check{
		"native frames":  {State: stateDegraded, Why: "files have unwind tables"},
		"native names":   {State: stateInfo, Why: "1 of "},
		"bare":           {State: stateDegraded, Why: "no .eh_frame"},
		"generated code": {State: stateInfo, Why: "8.0 KiB of code is in no file"},
	} {
		if k := found[name]; k.State != want.State || !strings.Contains(k.Why, want.Why) {
			t.Errorf("%s: %+v, want %+v", name, k, want)
		}
	}
	cached, err := filepath.Glob(filepath.Join(stacks.UnwindCache().Directory, "*.unwind"))
	if err != nil || len(cached) == 0 {
		t.Errorf("nothing is in the cache: %v", err)
	}
}

func TestDoctorSaysWhyAProcessCannotBeWalked(t *testing.T) {
	failed := unwinding.FileStatus{State: unwinding.Absent, Reason: unwinding.ErrNoRoom}
	ready := unwinding.FileStatus{State: unwinding.Ready, Bytes: 4096}
	for name, c := range map[string]struct {
		status unwinding.ProcessStatus
		state  string
		why    string
	}{
		"32-bit": {unwinding.ProcessStatus{Mappings: 3, Compat: true, Files: []unwinding.FileStatus{ready}}, stateMissing,
			"32-bit code"},
		"nothing mapped": {unwinding.ProcessStatus{}, stateMissing, "nothing executable"},
		"no table": {unwinding.ProcessStatus{Mappings: 3, Files: []unwinding.FileStatus{failed}}, stateDegraded,
			"no room for another unwind table"},
		"too many mappings": {unwinding.ProcessStatus{Mappings: 1023, Dropped: 7, Files: []unwinding.FileStatus{ready}}, stateDegraded,
			"7 executable mappings"},
		"all well": {unwinding.ProcessStatus{Mappings: 3, Files: []unwinding.FileStatus{ready, ready}}, stateOK,
			"3 executable mappings and the tables of 2 files, 8.0 KiB"},
	} {
		if k := walkCheck(c.status); k.State != c.state || !strings.Contains(k.Why, c.why) {
			t.Errorf("%s: %+v", name, k)
		}
	}
}

func TestDoctorTellsTheKernelOfAProcess(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("kernel: needs root, not in -short")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	p := startBare(t)
	for _, k := range walkChecks(p) {
		if k.Name == "native walk" && k.State == stateOK && strings.Contains(k.Why, "the kernel knows") {
			return
		}
	}
	t.Errorf("the walk's check is %+v", walkChecks(p))
}
