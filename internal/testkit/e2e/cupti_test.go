package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// besideCUPTI is the stub program on a stub of libcupti, started by `run --device-times cupti`; it waits for its line.
func besideCUPTI(t *testing.T, version string, environment []string, command ...string) (job *harness.Command, dataset string) {
	t.Helper()
	if _, err := os.Stat("../../record/injection/built/libebpfprof-cupti.so"); err != nil {
		t.Skip("the library that asks CUPTI is not built: run `make cupti`")
	}
	directory := filepath.Dir(stubPath(t, version+"/libcupti.so.13"))
	dataset = filepath.Join(t.TempDir(), "dataset")
	line := append([]string{"env", "LD_LIBRARY_PATH=" + directory}, environment...)
	line = append(line, harness.Binary, "run", "--output", dataset, "--probe", cudaGroups, "--device-times", "cupti")
	job = harness.Start(t, append(append(append(line, harness.Unbudgeted...), "--"), command...)...)
	job.Line(t, "ready ")
	becomesLinked(t, job.Process.Pid, job.ReadyPID(t), "/libcuda.so", strings.Split(cudaGroups, ",")...)
	return job, dataset
}

func ends(t *testing.T, job *harness.Command, dataset string) *harness.Recording {
	t.Helper()
	job.GoOn(t)
	if code, err := job.Wait(); err != nil || code != 0 {
		t.Fatalf("%s: exit code %d, %v\n%s", job, code, err, job.Transcript())
	}
	return &harness.Recording{Dataset: dataset}
}

// truth counts what the stub device did, by its name and how long it took.
func truth(t *testing.T, log string) map[string]int64 {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := map[string]int64{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Split(lines.Text(), "\t")
		if fields[0] != "work" {
			continue
		}
		var began, ended int64
		if _, err := fmt.Sscan(fields[4], &began); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(fields[5], &ended); err != nil {
			t.Fatal(err)
		}
		found[fmt.Sprintf("%s %d", fields[1], ended-began)]++
	}
	return found
}

const deviceRows = `SELECT coalesce(symbol, CASE name WHEN 'Memcpy HtoD' THEN 'cuMemcpyHtoDAsync'
	WHEN 'Memcpy DtoH' THEN 'cuMemcpyDtoHAsync' ELSE name END)
	|| ' ' || duration_ns, count(*) FROM span WHERE layer = 'device' GROUP BY ALL`

// What the stub device did is in the recording, each piece once and to the nanosecond, launched by the recorded call.
func TestCUPTISaysWhatTheDeviceDid(t *testing.T) {
	harness.Beside(t, "libcuda")
	log := filepath.Join(t.TempDir(), "truth")
	job, dataset := besideCUPTI(t, "cupti", []string{"STUB_LOG=" + log}, stub(t, "trainstep"), "20")
	r := ends(t, job, dataset)
	want := truth(t, log)
	harness.SameCounts(t, "work of the device, and how long it took", r.Counts(t, deviceRows), want)
	if len(want) < 100 {
		t.Errorf("only %d different pieces of work", len(want))
	}
	const launched = `SELECT count(*) FROM span d JOIN span l ON d.launch_id = l.span_id WHERE d.layer = 'device' AND l.layer = 'runtime'
		AND (d.name = l.name OR d.category = 'copy' AND l.name LIKE 'cuMemcpy%%')`
	if got, rows := r.Number(t, launched), r.Number(t, "SELECT count(*) FROM span WHERE layer = 'device'"); got != rows || rows != 340 {
		t.Errorf("%d of %d rows have their launch, want all of 340", got, rows)
	}
	merged := r.Rows(t, `SELECT method, calls, matched, device_rows, launched, bounds_checked > 300, bounds_held = bounds_checked,
		offset_lo_ns >= 0 FROM merged_trace`)
	if want := "[[cupti 340 340 340 340 true true true]]"; fmt.Sprint(merged) != want {
		t.Errorf("%v, want %s", merged, want)
	}
	if cost := fmt.Sprint(r.Rows(t, "SELECT detail FROM warning WHERE kind = 'cost'")); !strings.Contains(cost,
		"that time is not in overhead_percent") {
		t.Errorf("what CUPTI cost is not said to be missing: %s", cost)
	}
	if !strings.Contains(job.Transcript(), "of the job's time, without CUPTI's own work in it, which is not measured: probes ") {
		t.Error(job.Transcript())
	}
	r.Lossless(t)
}

// Each node of a graph is a row, with its kernel's name, launched by the graph's launch.
func TestCUPTISaysWhatAGraphDid(t *testing.T) {
	harness.Beside(t, "libcuda")
	job, dataset := besideCUPTI(t, "cupti", nil, stub(t, "trainstep"), "30", "graph")
	r := ends(t, job, dataset)
	got := r.Counts(t, `SELECT d.name || ' by ' || l.category, count(*) FROM span d JOIN span l ON d.launch_id = l.span_id
		WHERE d.layer = 'device' GROUP BY ALL`)
	harness.SameCounts(t, "nodes", got, map[string]int64{
		"gemm_k(float const*, float const*, float*) by graph": 30, "at::native::(anonymous namespace)::vector(float*, int) by graph": 30,
	})
}

// A process that calls the library's function with whatever it likes costs rows of its own: what it hands over is counted.
func TestCUPTIsFunctionTakesNothingThatIsNoChunk(t *testing.T) {
	harness.Beside(t, "libcuda")
	command := fmt.Sprintf("%s $CUDA_INJECTION64_PATH 20; exec %s 20", stub(t, "badactivities"), stub(t, "trainstep"))
	job, dataset := besideCUPTI(t, "cupti", nil, "bash", "-c", command)
	r := ends(t, job, dataset)
	if rows := r.Number(t, "SELECT count(*) FROM span WHERE layer = 'device'"); rows != 340 {
		t.Errorf("%d rows of devices, want 340", rows)
	}
	got := r.Counts(t, "SELECT source, sum(count)::BIGINT FROM warning WHERE kind = 'lost' AND source LIKE 'cupti%%' GROUP BY ALL")
	harness.SameCounts(t, "what was left out", got, map[string]int64{"cupti_length": 60, "cupti_unreadable": 60, "cupti_bad": 40})
}

// A CUPTI that is not known is not used, and one sentence says so; the job is recorded as always.
func TestACUPTIFromTheFutureIsRefused(t *testing.T) {
	harness.Beside(t, "libcuda")
	job, dataset := besideCUPTI(t, "cupti-newer", nil, stub(t, "trainstep"), "5")
	r := ends(t, job, dataset)
	detail := fmt.Sprint(r.Rows(t, "SELECT detail FROM warning WHERE kind = 'device_times'"))
	if !strings.Contains(detail, "CUPTI has version 990000, whose records are not known") {
		t.Error(detail)
	}
	if launches := r.Number(t, "SELECT count(*) FROM span WHERE layer = 'runtime' AND category = 'launch'"); launches != 75 {
		t.Errorf("%d launches, want 75", launches)
	}
}

// Who cannot have device times hears why before the job is started.
func TestDeviceTimesOfCUPTIAreRefusedInASentence(t *testing.T) {
	harness.NeedKernel(t)
	for _, c := range []struct {
		want string
		line []string
	}{
		{"start the job with ebpfprof run", []string{harness.Binary, "attach", "--pid", "1", "--device-times", "cupti"}},
		{"CUDA_INJECTION64_PATH is set already, to /another.so",
			[]string{"env", "CUDA_INJECTION64_PATH=/another.so", harness.Binary, "run", "--device-times", "cupti", "--", "true"}},
	} {
		job := harness.Start(t, c.line...)
		if code, err := job.Wait(); err != nil || code == 0 || !strings.Contains(job.Transcript(), c.want) {
			t.Errorf("%s: exit code %d, %v, want %q\n%s", job, code, err, c.want, job.Transcript())
		}
	}
}
