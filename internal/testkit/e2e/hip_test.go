package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

var nativeDirectory = filepath.Join("..", "..", "..", "testdata", "native")

var buildNative = sync.OnceValue(func() error {
	out, err := exec.Command("make", "-s", "-C", nativeDirectory).CombinedOutput()
	if err != nil {
		return fmt.Errorf("building the native programs: %w\n%s", err, out)
	}
	return nil
})

// refused runs a program that calls a real runtime without a device, and returns
// what was recorded and what the program got.
func refused(t *testing.T, groups, program, library string, functions ...string) (*harness.Recording, expectations) {
	t.Helper()
	harness.NeedKernel(t)
	if err := buildNative(); err != nil {
		t.Fatal(err)
	}
	job := harness.Start(t, append([]string{filepath.Join(nativeDirectory, "build", program), library, "wait"}, functions...)...)
	job.Until(t, "word that it is ready", func(out []string, errs string) bool {
		return strings.HasPrefix(strings.Join(out, ""), "ready ") || strings.Contains(errs, library)
	})
	if errs := job.Transcript(); strings.Contains(errs, "cannot open shared object") {
		t.Skipf("%s is not here: run `make deps runtimes`", library)
	}
	tracing := harness.Attach(t, append([]string{"--probe", groups}, harness.Unbudgeted...), job.Process.Pid)
	job.GoOn(t)
	if code, err := job.Wait(); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v\n%s", code, err, job.Transcript())
	}
	r := tracing.Finish(t)
	r.Lossless(t)
	return r, expectationsOf(t, job)
}

// refusal is the status and the code of a call that the program got a code from.
func refusal(code string) (status, errorCode string) {
	if code == "0" {
		return "ok", "<nil>"
	}
	return "error", code
}

// Debian's HIP runtime, without a device: every call is refused, and the
// recording says with which status.
func TestRefusedCallsOfARealHIPHaveTheirStatus(t *testing.T) {
	harness.Beside(t, "hip")
	r, said := refused(t, hipGroups, "hiprefused", "libamdhip64.so.5")
	want := said.calls
	// The runtime may call its own exported functions; those are inside a call.
	rows := r.Rows(t, "SELECT name, category, status, error_code FROM span WHERE runtime = 'hip' AND parent_id IS NULL ORDER BY ts_ns")
	if len(rows) != len(want) || len(want) == 0 {
		t.Fatalf("%d calls recorded, %d made", len(rows), len(want))
	}
	for i, call := range want {
		status, code := refusal(call.columns["code"])
		name := call.symbol
		if call.category == "launch" { // of a host function that is none
			name = "kernel of hiprefused"
		}
		got, told := fmt.Sprint(rows[i]), fmt.Sprintf("[%s %s %s %s]", name, call.category, status, code)
		if got != told {
			t.Errorf("call %d: recorded %s, the program got %s", i, got, told)
		}
	}
	if n := r.Number(t, "SELECT count(*) FROM memory"); n != 0 {
		t.Errorf("%d changes of memory recorded, though every allocation was refused", n)
	}
}

// TestEveryCallOfARealLibcudaHasItsStatus: NVIDIA's driver library, without a
// device. Its entry code is that of the real one, on which the stub's is modelled:
// every catalogued function that it exports is called through it once.
func TestEveryCallOfARealLibcudaHasItsStatus(t *testing.T) {
	harness.Beside(t, "libcuda")
	list, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "symbols", "libcuda-550.txt"))
	if err != nil {
		t.Fatal(err)
	}
	exports := strings.Fields(string(list))
	var functions []string
	categories := map[string]string{}
	for _, g := range catalog.Groups() {
		for _, f := range g.Functions {
			if f.Runtime != "cuda" || !slices.Contains(strings.Split(cudaGroups, ","), g.Name) || !slices.Contains(exports, f.Symbol) {
				continue
			}
			categories[f.Symbol] = f.Category
			if f.Label != "cuGetProcAddress" { // the program has calls of its own
				functions = append(functions, f.Symbol)
			}
		}
	}
	r, said := refused(t, cudaGroups, "cudarefused", filepath.Join(harness.Cache(), "runtimes", "libcuda-550", "libcuda.so.550.163.01"),
		functions...)
	rows := r.Rows(t, `SELECT name, category, status, error_code, end_method, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
		stream, bytes, direction
		FROM span WHERE runtime = 'cuda' AND parent_id IS NULL ORDER BY ts_ns`)
	columns := []string{"grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared_bytes", "stream", "bytes", "direction"}
	if len(rows) != len(said.calls) || len(rows) != len(functions)+9 || len(functions) < 230 {
		t.Fatalf("%d calls recorded, %d made, of %d functions", len(rows), len(said.calls), len(functions))
	}
	codes := map[string]int{}
	for i, call := range said.calls {
		status, code := refusal(call.columns["code"])
		codes[call.columns["code"]]++
		category := call.category
		if category == "-" {
			category = categories[call.symbol]
		}
		name := functionName(call.symbol)
		if fmt.Sprint(rows[i][0]) == "kernel of cudarefused" && (category == "launch" || category == "graph") { // of no handle
			name = "kernel of cudarefused"
		}
		got, told := fmt.Sprint(rows[i][:5]), fmt.Sprintf("[%s %s %s %s return]", name, category, status, code)
		if got != told {
			t.Errorf("call %d, %s: recorded %s, the program got %s", i, call.symbol, got, told)
		}
		for j, column := range columns {
			if want, ok := call.columns[column]; ok && fmt.Sprint(rows[i][5+j]) != want {
				t.Errorf("call %d, %s: %s is %v, want %s", i, call.symbol, column, rows[i][5+j], want)
			}
		}
	}
	t.Logf("%d functions, %d calls, codes %v", len(functions), len(rows), codes)
	if n := r.Number(t, "SELECT count(*) FROM memory WHERE action IN ('alloc', 'map', 'reserve')"); n != 0 {
		t.Errorf("%d allocations recorded, though each was refused", n)
	}
}
