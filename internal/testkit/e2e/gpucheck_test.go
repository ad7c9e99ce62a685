package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// gpucheck builds the program that checks ebpfprof against a GPU.
func gpucheck(t *testing.T) (program, stubs string) {
	t.Helper()
	harness.NeedKernel(t)
	stubs, err := filepath.Abs(filepath.Join("..", "..", "..", "testdata", "stubs", "build"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(stubs, "trainstep")); err != nil {
		t.Skip("the stub devices are not built: run `make native`")
	}
	if err := buildGPUCheck(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(harness.Scratch, "gpucheck"), stubs
}

var buildGPUCheck = sync.OnceValue(func() error {
	return harness.Build(filepath.Join(harness.Scratch, "gpucheck"), "../../dev/gpucheck")
})

// TestGPUCheckAgreesWithTheStub: the program that is meant for a GPU, on the stub
// libcuda. It shows that gpucheck counts and compares, and nothing about a GPU.
func TestGPUCheckAgreesWithTheStub(t *testing.T) {
	harness.Beside(t, "libcuda")
	program, stubs := gpucheck(t)
	file := filepath.Join(t.TempDir(), "stub.json")
	if out, err := exec.Command(program, "--stub", stubs, "--steps", "20", "--output", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Agrees  bool
		Machine struct{ Stub bool }
		Checks  []struct {
			Name        string
			Agrees      bool
			Launches    int64
			Names_agree int64
			Told        struct{ Graph_launches int64 }
		}
	}
	if err := json.Unmarshal(content, &report); err != nil {
		t.Fatal(err)
	}
	if !report.Agrees || !report.Machine.Stub || len(report.Checks) != 2 {
		t.Fatalf("%s", content)
	}
	training, graph := report.Checks[0], report.Checks[1]
	if training.Launches != 20*15 || training.Names_agree != training.Launches || graph.Told.Graph_launches != 20 {
		t.Errorf("%d launches, %d by name, %d graphs; want 300, 300 and 20", training.Launches, training.Names_agree, graph.Told.Graph_launches)
	}
}

func TestGPUCheckSaysWhatIsMissing(t *testing.T) {
	harness.Beside(t)
	program, _ := gpucheck(t)
	if devices, _ := filepath.Glob("/dev/nvidia[0-9]*"); len(devices) == 0 {
		c := exec.Command(program)
		out, _ := c.CombinedOutput()
		if c.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), "no NVIDIA GPU on this machine") {
			t.Errorf("without a GPU: exit code %d, %s", c.ProcessState.ExitCode(), out)
		}
	}
	// Where a person may not trace: anyone but root.
	if err := os.Chmod(harness.Scratch, 0o755); err != nil {
		t.Fatal(err)
	}
	readable := filepath.Join(harness.Scratch, "stubs-for-all")
	if err := os.MkdirAll(readable, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(readable, "trainstep"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "--stub", readable)
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	if code := c.ProcessState.ExitCode(); code != 4 || !strings.Contains(string(out), "does not let gpucheck trace") {
		t.Errorf("without the right to trace: exit code %d, %s", code, out)
	}
}
