package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// toldByStub is what trainstep and the jobs of gpucheck say of themselves.
type toldByStub struct {
	Told struct {
		Launches map[string]int64 `json:"launches"`
		Copies   int64            `json:"copies"`
	} `json:"told"`
}

// recordTrainStep attaches to a program on the stub libcuda whose handles are
// there already. moved is the libcuda that keeps names elsewhere.
func recordTrainStep(t *testing.T, moved, hooked bool, args ...string) (*harness.Recording, toldByStub) {
	t.Helper()
	harness.NeedKernel(t)
	build := filepath.Join("..", "..", "..", "testdata", "stubs", "build")
	if _, err := os.Stat(filepath.Join(build, "trainstep")); err != nil {
		t.Skip("the stub devices are not built: run `make native`")
	}
	environment := []string{"env"}
	if moved {
		environment = append(environment, "LD_LIBRARY_PATH="+filepath.Join(build, "moved"))
	}
	if hooked {
		hook, err := filepath.Abs(filepath.Join(build, "libcuda-hook.so"))
		if err != nil {
			t.Fatal(err)
		}
		environment = append(environment, "LD_PRELOAD="+hook)
	}
	job := harness.Start(t, append(append(environment, filepath.Join(build, "trainstep")), args...)...)
	job.Line(t, "ready ")
	tracing := harness.Attach(t, append(harness.Unbudgeted, "--probe", "cuda,cuda-code,cuda-sync"), job.Process.Pid)
	job.GoOn(t)
	if code, err := job.Wait(); code != 0 || err != nil {
		t.Fatalf("%s: %d, %v\n%s", job, code, err, job.Transcript())
	}
	r := tracing.Finish(t)
	var told toldByStub
	for _, l := range job.Lines() {
		if strings.HasPrefix(l, `{"told"`) {
			if err := json.Unmarshal([]byte(l), &told); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r, told
}

// TestKernelsOlderThanTheAttachHaveTheirNames: CUfunctions and CUkernels that
// were fetched before, by the memory behind them; one fetched later, by its call.
func TestKernelsOlderThanTheAttachHaveTheirNames(t *testing.T) {
	harness.Beside(t, "libcuda")
	for _, moved := range []bool{false, true} {
		t.Run(fmt.Sprintf("moved=%v", moved), func(t *testing.T) {
			r, told := recordTrainStep(t, moved, false, "30")
			r.Lossless(t)
			harness.SameCounts(t, "launches of a stub, by name", r.Counts(t, `SELECT name, count(*) FROM span WHERE category = 'launch'
				GROUP BY ALL`), told.Told.Launches)
			sources := r.Counts(t, `SELECT name_source, count(*) FROM span WHERE category = 'launch' GROUP BY ALL`)
			late := told.Told.Launches["late()"]
			sum := int64(0)
			for _, n := range told.Told.Launches {
				sum += n
			}
			harness.SameCounts(t, "launches of a stub, by source of the name", sources, map[string]int64{"getfunction": late,
				"cufunc_struct": sum - late})
			if n := r.Number(t, `SELECT count(*) FROM warning WHERE source LIKE 'kernel_name:%%'`); n != 0 {
				t.Errorf("%d reasons why a kernel has no name, want none", n)
			}
		})
	}
}

// TestLaunchesWithoutANameSayWhichLibraryMadeThem: by the address that the call
// returns to. The launches by a library that was loaded during the recording are
// that library's, the program's own the program's.
func TestLaunchesWithoutANameSayWhichLibraryMadeThem(t *testing.T) {
	harness.Beside(t, "libcuda")
	r, _ := recordTrainStep(t, false, false, "7", "library")
	r.Lossless(t)
	harness.SameCounts(t, "launches of a stub", r.Counts(t, `SELECT name || ' ' || name_source, count(*) FROM span WHERE category = 'launch'
		GROUP BY ALL`),
		map[string]int64{"kernel of libblas-stub.so library": 7, "kernel of trainstep library": 1})
	if n := r.Number(t, `SELECT count(*) FROM span WHERE category = 'launch' AND symbol IS NOT NULL`); n != 0 {
		t.Errorf("%d launches of no name have a symbol", n)
	}
}

func TestHandlesThatAreNoneAreLaunchesWithoutAName(t *testing.T) {
	harness.Beside(t, "libcuda")
	r, _ := recordTrainStep(t, false, false, "1", "garbage")
	r.Lossless(t)
	harness.SameCounts(t, "launches of a stub", r.Counts(t, `SELECT name || ' ' || name_source || ' ' || status, count(*) FROM span
		WHERE category = 'launch' GROUP BY ALL`),
		map[string]int64{"kernel of trainstep library ok": 3, "kernel of trainstep library error": 1})
	harness.SameCounts(t, "reasons", r.Counts(t, `SELECT source, count FROM warning WHERE source LIKE 'kernel_name:%%'`),
		map[string]int64{"kernel_name:null": 1, "kernel_name:no_name": 3})
}

// TestALibraryInFrontOfLibcudaIsSeenAndNotCounted: it has libcuda's functions and
// passes on. Each launch is counted once, inside the call of the library in front.
func TestALibraryInFrontOfLibcudaIsSeenAndNotCounted(t *testing.T) {
	harness.Beside(t, "libcuda")
	r, told := recordTrainStep(t, false, true, "20")
	r.Lossless(t)
	harness.SameCounts(t, "launches of a stub", r.Counts(t, `SELECT name, count(*) FROM span WHERE category = 'launch'
		GROUP BY ALL`), told.Told.Launches)
	harness.SameCounts(t, "launches inside a call of the library in front", r.Counts(t, `SELECT o.name, count(*) FROM span o JOIN span i
		ON i.parent_id = o.span_id AND i.name = o.name AND i.handle = o.handle
		WHERE o.category = 'interposer' AND i.category = 'launch' GROUP BY ALL`), told.Told.Launches)
}
