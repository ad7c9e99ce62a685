package merge

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// written is an event of a trace that a test makes up; times are in nanoseconds.
type written struct {
	category, name   string
	tid, begin, took int64
	arguments        map[string]any
}

// write writes a trace of torch.profiler whose clock is ahead by so much.
func write(t *testing.T, pid int32, ahead int64, events []written) string {
	t.Helper()
	var all []map[string]any
	for _, e := range events {
		all = append(all, map[string]any{"ph": "X", "cat": e.category, "name": e.name, "pid": pid, "tid": e.tid,
			"ts": float64(e.begin+ahead) / 1e3, "dur": float64(e.took) / 1e3, "args": e.arguments})
	}
	text, err := json.Marshal(map[string]any{"schemaVersion": 1, "traceEvents": all, "baseTimeNanoseconds": 0})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "trace.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// recordedAndTraced is a job of some steps, and its operators and the rest as events of a trace.
func recordedAndTraced(t *testing.T, steps int) (recording string, operators, calls []written) {
	t.Helper()
	j := scripted.New()
	for step := range steps {
		var launch *event.Span
		operator := j.Op("aten::mm", 9_000, func() {
			launch = j.Call("runtime", "launch", "gemm", 5_000)
			j.Bound(launch, 0, 60_000)
		})
		j.Wait(100_000 + int64(step*step%17)*7_000)
		operators = append(operators, written{"cpu_op", "aten::mm", 100, operator.StartNS, operator.DurationNS - 2_000,
			map[string]any{"External id": step + 1}})
		calls = append(calls,
			written{"cuda_runtime", "cudaLaunchKernel", 100, launch.StartNS, launch.DurationNS, map[string]any{"correlation": step + 1}},
			written{"kernel", "gemm(float*)", 7, launch.StartNS + 6_000, 50_000 + int64(step%2)*20_000,
				map[string]any{"correlation": step + 1, "stream": 7, "device": 0}})
	}
	return scripted.Write(t, j), operators, calls
}

// files are the hashes of a dataset's files by their names.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all[path] = fmt.Sprintf("%x", sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestATraceBecomesDeviceRowsOfARecordingWhoseFilesStay(t *testing.T) {
	recording, operators, calls := recordedAndTraced(t, 60)
	before := files(t, recording)
	trace := write(t, 100, 700_000, append(operators, calls...))
	m, err := Trace(t.Context(), recording, trace, Options{Method: event.MergedFile})
	if err != nil {
		t.Fatal(err)
	}
	if m.Calls != 60 || m.Matched != 60 || m.DeviceRows != 60 || m.Launched != 60 || *m.OffsetNS != 700_000 || m.Source != "torch.profiler" {
		t.Errorf("%+v", m)
	}
	// Every other kernel takes longer than its bound.
	if m.BoundsChecked != 60 || m.BoundsHeld != 30 {
		t.Errorf("%d of %d bounds hold, want 30 of 60", m.BoundsHeld, m.BoundsChecked)
	}
	after := files(t, recording)
	for path, hash := range before {
		if after[path] != hash {
			t.Errorf("%s was changed", path)
		}
	}
	db, err := dataset.Open(recording)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var rows, apart int
	if err := db.Row(t.Context(), `SELECT count(*), count(*) FILTER (d.ts_ns - l.ts_ns <> 6000) FROM span d
		JOIN span l ON l.span_id = d.launch_id
		WHERE d.layer = 'device' AND d.device_time_method = 'file' AND l.name = 'gemm'`, nil, &rows, &apart); err != nil {
		t.Fatal(err)
	}
	if rows != 60 || apart != 0 {
		t.Errorf("%d kernels hang on their launches, %d at another time", rows, apart)
	}
	if _, err := Trace(t.Context(), recording, trace, Options{Method: event.MergedFile}); !errors.Is(err, ErrMerged) {
		t.Errorf("a second time: %v", err)
	}
	if !maps.Equal(after, files(t, recording)) {
		t.Error("the second time left something behind")
	}
}

// An export of Nsight Systems without ranges has calls of the runtime alone.
func TestTheRuntimesCallsPairWhatHasNoOperatorInCommon(t *testing.T) {
	recording, _, calls := recordedAndTraced(t, 60)
	m, err := Trace(t.Context(), recording, write(t, 100, -40_000, calls), Options{Method: event.MergedFile})
	if err != nil {
		t.Fatal(err)
	}
	if m.Matched != 60 || m.Launched != 60 || *m.OffsetNS != -40_000 {
		t.Errorf("%+v", m)
	}
}

func TestATraceOfAnotherJobOrTimeIsRefusedAndLeavesNothing(t *testing.T) {
	recording, operators, calls := recordedAndTraced(t, 60)
	before := files(t, recording)
	other := make([]written, len(operators))
	for i, o := range operators {
		o.name = "aten::other"
		other[i] = o
	}
	imported := write(t, 100, 0, append(operators, calls...))
	for name, c := range map[string]struct {
		trace, want string
		pid         int32
	}{
		"another time":    {write(t, 100, 3_600_000_000_000, append(operators, calls...)), "the trace is of 1970-01-01 01:00:01", 0},
		"another job":     {write(t, 100, 0, other), "no call in common", 0},
		"another process": {imported, "give the recorded process with --pid", 4711},
		"no trace":        {recording + "/views.sql", "cannot be imported", 0},
	} {
		_, err := Trace(t.Context(), recording, c.trace, Options{PID: c.pid, Method: event.MergedFile})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if !maps.Equal(before, files(t, recording)) {
			t.Errorf("%s left something behind", name)
		}
	}
}
