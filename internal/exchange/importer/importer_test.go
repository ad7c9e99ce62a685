package importer

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

func importFiles(t *testing.T, files ...string) (*dataset.DB, *Summary) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	summary, err := Import(context.Background(), files, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, summary
}

func one(t *testing.T, db *dataset.DB, sql string) string {
	t.Helper()
	var text *string
	if err := db.Row(t.Context(), "SELECT ("+sql+")::VARCHAR", nil, &text); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if text == nil {
		return "NULL"
	}
	return *text
}

// answers checks what queries of one value say.
func answers(t *testing.T, db *dataset.DB, wanted map[string]string) {
	t.Helper()
	for sql, want := range wanted {
		if got := one(t, db, sql); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// trace wraps events the way torch.profiler does.
func trace(events ...string) string {
	return `{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}], "traceEvents": [` + strings.Join(events, ",\n") +
		`], "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8}, "baseTimeNanoseconds": 1000000000000000000}`
}

const small = `
{"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 7, "tid": 8, "ts": 100.001, "dur": 50.5, "args": {"External id": 1}},
{"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 7, "tid": 8, "ts": 110, "dur": 20, "args": {"External id": 2, "Sequence number": 5, "Input Dims": [[5], [3, 4], [4, 5], [], []], "Input type": ["float", "float", "float", "Scalar", "Scalar"]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 8, "ts": 112, "dur": 5, "args": {"correlation": 77}},
{"ph": "X", "cat": "kernel", "name": "gemm<\"a\\b\">", "pid": 0, "tid": 7, "ts": 140, "dur": 3.25, "args": {"correlation": 77, "stream": 7, "device": 0, "grid": [2, 3, 1], "block": [32, 1, 1]}},
{"ph": "X", "cat": "python_function", "name": "train.py(12): step", "pid": 7, "tid": 8, "ts": 99, "dur": 80, "args": {}},
{"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: AddmmBackward0", "pid": 7, "tid": 9, "ts": 300, "dur": 10, "args": {"Sequence number": 5, "Fwd thread id": 1}},
{"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": 5, "pid": 7, "tid": 8, "ts": 110},
{"ph": "f", "cat": "fwdbwd", "name": "fwdbwd", "id": 5, "pid": 7, "tid": 9, "ts": 300, "bp": "e"},
{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 7, "tid": 8, "ts": 115, "s": "t", "args": {"Bytes": 512, "Addr": 4096, "Device Type": 1, "Device Id": 0, "Total Allocated": 512, "Total Reserved": 2048}},
{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 7, "tid": 8, "ts": 116, "s": "t", "args": {"Bytes": -512, "Addr": 4096, "Device Type": 1, "Device Id": 0}}`

func TestATraceKeepsItsMeaning(t *testing.T) {
	db, summary := importFiles(t, file(t, "t.json", trace(small)))
	if summary.Spans != 6 || summary.DeviceRows != 1 || summary.MemoryRows != 2 || summary.Flows != 1 {
		t.Errorf("%+v", summary)
	}
	answers(t, db, map[string]string{
		"SELECT ts_ns || '+' || duration_ns FROM span WHERE name = " +
			"'aten::linear'": "1000000000000100001+50500",
		"SELECT p.name FROM span s JOIN span p ON p.span_id = s.parent_id WHERE s.name = " +
			"'aten::addmm'": "aten::linear",
		"SELECT p.name FROM span s JOIN span p ON p.span_id = s.parent_id WHERE s.name = " +
			"'aten::linear'": "train.py(12): step",
		"SELECT l.name FROM span s JOIN span l ON l.span_id = s.launch_id WHERE " +
			"s.layer = 'device'": "cudaLaunchKernel",
		"SELECT flops || '/' || bytes_moved FROM span WHERE name = " +
			"'aten::addmm'": "135/208",
		"SELECT name || category || stream || work_x || duration_ns || pid || tid || device_time_method FROM span WHERE " +
			"layer='device'": `gemm<"a\b">kernel7643250` + "70imported",
		"SELECT frames[1].file || ':' || frames[1].line || frames[1].function FROM stack JOIN span USING (stack_id) WHERE name = " +
			"'aten::addmm'": "train.py:12step",
		"SELECT layer || category || sequence_number FROM span WHERE name = " +
			"'AddmmBackward0'": "autogradnode5",
		"SELECT f.name || t.name FROM flow JOIN span f ON f.span_id = from_span_id JOIN span t ON t.span_id " +
			"= to_span_id": "aten::addmmAddmmBackward0",
		"SELECT string_agg(action || m.bytes || space || s.name, ' ' ORDER BY m.ts_ns) FROM memory m JOIN span s " +
			"USING (span_id)": "alloc512devicecudaLaunchKernel free512devicecudaLaunchKernel",
		"SELECT rank || '/' || world_size FROM process":     "3/8",
		"SELECT source || ', ' || device_name FROM session": "imported from torch.profiler, NVIDIA H100",
	})
}

// TestTracesOfOldVersionsAndOfROCmMeanTheSame: synthetic rows as PyTorch 1.8 to 1.11 and builds
// for ROCm write them.
func TestTracesOfOldVersionsAndOfROCmMeanTheSame(t *testing.T) {
	db, _ := importFiles(t, file(t, "t.json", trace(`
{"ph": "X", "cat": "Operator", "name": "ProfilerStep#3", "pid": 7, "tid": "8", "ts": 100, "dur": 900, "args": {"External id": 1}},
{"ph": "X", "cat": "Operator", "name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "pid": 7, "tid": "8", "ts": 110, "dur": 20, "args": {}},
{"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 7, "tid": "8", "ts": 150, "dur": 50, "args": {"Input dims": [[3, 4], [4, 5]], "Input type": ["float", "float"]}},
{"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": "8", "ts": 160, "dur": 5, "args": {"cbid": 211, "correlation": 9}},
{"ph": "X", "cat": "Kernel", "name": "ampere_sgemm_32x32_sliced1x4_tn", "pid": 0, "tid": "stream 7", "ts": 180, "dur": 30, "args": {"device": 0, "stream": 7, "correlation": 9}},
{"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": "stream 7", "ts": 220, "dur": 3, "args": {"bytes": 64, "correlation": 10}},
{"ph": "X", "cat": "cuda_runtime", "name": "hipMemcpyWithStream", "pid": 7, "tid": 8, "ts": 300, "dur": 40, "args": {"correlation": 11}},
{"ph": "X", "cat": "gpu_memcpy", "name": "CopyDeviceToHost", "pid": 2, "tid": 0, "ts": 310, "dur": 4, "args": {"device": 2, "stream": 0, "correlation": 11}},
{"ph": "X", "cat": "cuda_runtime", "name": "hipExtModuleLaunchKernel", "pid": 7, "tid": 8, "ts": 400, "dur": 4, "args": {"correlation": 12}},
{"ph": "X", "cat": "kernel", "name": "Cijk_Alik_Bljk_HHS_BH_MT64x32x64", "pid": 2, "tid": 0, "ts": 410, "dur": 6.5, "args": {"device": 2, "stream": 0, "correlation": 12}},
{"ph": "X", "cat": "cuda_event", "name": "cudaEventRecord", "pid": 0, "tid": 7, "ts": 500, "dur": 0, "args": {"device": 0, "stream": 7}}`)))
	answers(t, db, map[string]string{
		"SELECT string_agg(layer || ' ' || left(name, 12), ', ' ORDER BY ts_ns) FROM span WHERE layer IN " +
			"('scope', 'op')": "scope ProfilerStep, scope enumerate(Da, op aten::mm",
		"SELECT flops FROM span WHERE name = 'aten::mm'": "120",
		"SELECT string_agg(category || ' ' || stream, ', ' ORDER BY ts_ns) FROM span WHERE layer = 'device' AND category <> " +
			"'annotation'": "kernel 7, copy 7, copy 0, kernel 0",
		"SELECT string_agg(direction, ', ' ORDER BY ts_ns) FROM span WHERE layer = 'device' AND direction " +
			"IS NOT NULL": "host_to_device, device_to_host",
		"SELECT string_agg(l.runtime || ' ' || l.category, ', ' ORDER BY l.ts_ns) FROM span d JOIN span l ON l.span_id = " +
			"d.launch_id": "cuda launch, hip copy, hip launch",
		"SELECT count(DISTINCT tid) FROM span WHERE layer <> 'device'":                   "1",
		"SELECT count(*) FROM span WHERE name = 'cudaEventRecord' AND layer <> 'device'": "0",
	})
}

// TestATraceOfAnAMDDeviceIsThatOfAnother: synthetic rows as PyTorch 2 for ROCm writes them, of
// the second of two devices, whose numbers begin behind those of the host's nodes.
func TestATraceOfAnAMDDeviceIsThatOfAnother(t *testing.T) {
	db, _ := importFiles(t, file(t, "t.json", trace(`
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 8, "ts": 100, "dur": 50, "args": {"External id": 4}},
{"ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": 7, "tid": 8, "ts": 110, "dur": 5, "args": {"External id": 4, "kernel": "k", "stream": "0x55", "grid": [2, 1, 1], "block": [256, 1, 1], "correlation": 20}},
{"ph": "X", "cat": "kernel", "name": "Cijk_Ailk_Bljk_BBS_BH_MT128x128x16_SE_K1", "pid": 3, "tid": 0, "ts": 120, "dur": 30, "args": {"External id": 4, "device": 3, "stream": 0, "correlation": 20, "grid": [2, 1, 1], "block": [256, 1, 1]}},
{"ph": "X", "cat": "hip_runtime", "name": "hipMemcpyAsync", "pid": 7, "tid": 8, "ts": 200, "dur": 9, "args": {"src": "0x1", "dst": "0x2", "size": "64", "correlation": 21}},
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 3, "tid": 0, "ts": 205, "dur": 3, "args": {"device": 3, "stream": 0, "correlation": 21, "bytes": 64}},
{"ph": "X", "cat": "cuda_runtime", "name": "hipMemsetAsync", "pid": 7, "tid": 8, "ts": 220, "dur": 4, "args": {"correlation": 22}},
{"ph": "X", "cat": "kernel", "name": "__amd_rocclr_fillBufferAligned.kd", "pid": 3, "tid": 0, "ts": 225, "dur": 2, "args": {"device": 3, "stream": 0, "correlation": 22}},
{"ph": "X", "cat": "cuda_runtime", "name": "hipExtLaunchKernel", "pid": 7, "tid": 8, "ts": 230, "dur": 4, "args": {"correlation": 23}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "pid": 3, "tid": 3, "ts": 240, "dur": 20, "args": {"device": 3, "stream": 3, "correlation": 23}},
{"ph": "X", "cat": "cuda_runtime", "name": "hipDeviceSynchronize", "pid": 7, "tid": 8, "ts": 250, "dur": 15, "args": {"correlation": 24}}`)))
	answers(t, db, map[string]string{
		"SELECT string_agg(category || ' ' || device_id || ' ' || stream, ', ' ORDER BY ts_ns) FROM span WHERE " +
			"layer = 'device'": "kernel 3 0, copy 3 0, set 3 0, collective 3 3",
		"SELECT string_agg(runtime || ' ' || category, ', ' ORDER BY ts_ns) FROM span WHERE layer " +
			"= 'runtime'": "hip launch, hip copy, hip set, hip launch, hip sync",
		"SELECT string_agg(l.name, ', ' ORDER BY d.ts_ns) FROM span d JOIN span l ON l.span_id = " +
			"d.launch_id": "hipLaunchKernel, hipMemcpyAsync, hipMemsetAsync, hipExtLaunchKernel",
		"SELECT p.name FROM span d JOIN span l ON l.span_id = d.launch_id JOIN span p ON p.span_id = l.parent_id WHERE d.name " +
			"LIKE 'Cijk%'": "aten::mm",
		"SELECT string_agg(direction || ' ' || bytes, ', ') FROM span WHERE direction IS NOT NULL": "host_to_device 64",
	})
}

func TestGzipAndAnArrayReadAsTheSame(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write([]byte(trace(small)))
	w.Close()
	for name, content := range map[string]string{"t.json.gz": z.String(), "t.json": "[" + small + "]"} {
		if _, summary := importFiles(t, file(t, name, content)); summary.Spans != 6 || summary.DeviceRows != 1 {
			t.Errorf("%s: %+v", name, summary)
		}
	}
}

// TestRanksOfContainersWithTheSamePIDStayApart: each rank often runs as the same
// process id in a container of its own.
func TestRanksOfContainersWithTheSamePIDStayApart(t *testing.T) {
	second := strings.Replace(trace(small), `"rank": 3`, `"rank": 4`, 1)
	db, _ := importFiles(t, file(t, "a.json", trace(small)), file(t, "b.json", second))
	answers(t, db, map[string]string{
		"SELECT string_agg(rank || ':' || ns_pid, ' ' ORDER BY rank) FROM process": "3:7 4:7",
		"SELECT count(DISTINCT pid) FROM span":                                     "2",
		"SELECT count(DISTINCT span_id) FROM span":                                 "12",
		"SELECT count(*) FROM span d JOIN span l ON l.span_id = d.launch_id AND l.pid = d.pid JOIN span p ON p.span_id = l.parent_id AND " +
			"p.pid = l.pid": "2",
		"SELECT count(*) FROM flow JOIN span f ON f.span_id = from_span_id JOIN span t ON t.span_id = to_span_id AND f.pid = t.pid WHERE " +
			"f.layer <> t.layer": "2",
	})
}

func TestWhatIsNoTraceIsASentenceAndLeavesNothing(t *testing.T) {
	whole := trace(small)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write([]byte(whole))
	w.Close()
	for name, content := range map[string]string{
		"empty":                "",
		"text":                 "hello",
		"cut off in its first": whole[:strings.Index(whole, "linear")+2],
		"gzip cut off early":   z.String()[:20],
		"gzip of nothing":      "\x1f\x8b garbage",
		"no events":            trace(),
		"another JSON":         `{"a": {"b": [1, 2, "}"]}}`,
		"not JSON at all":      `{"traceEvents": [{"ph": nope`,
		"sqlite of nobody":     "SQLite format 3\x00 garbage",
		"a number for a name":  `{1: 2}`,
		"an event that is not": `{"traceEvents": [{"ph" "X"}]}`,
		"a memory timeline":    `[[1700000000000000, "create", 1024, 5]]`,
		"a Git LFS pointer":    "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n",
		"a page":               "<!DOCTYPE html><html></html>",
		"an archive":           "PK\x03\x04 x",
		"UTF-16":               "\xff\xfe{\x00}\x00",
	} {
		dir := filepath.Join(t.TempDir(), "d")
		_, err := Import(context.Background(), []string{file(t, "x", content)}, dir, Options{})
		if !errors.Is(err, ErrFormat) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: left a dataset behind", name)
		}
	}
	if _, err := Import(context.Background(), []string{"/nowhere/x.json"}, filepath.Join(t.TempDir(), "d"), Options{}); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestHostileNamesAndValuesAreKeptApartFromTheRest(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	db, _ := importFiles(t, file(t, "t.json", trace(small,
		`{"ph": "X", "cat": "cpu_op", "name": "a\u0000\u001b[31m'; DROP TABLE span; --\ud800", "pid": 7, "tid": 8, "ts": 400, "dur": 1}`,
		`{"ph": "X", "cat": "cpu_op", "name": "`+long+`", "pid": 7, "tid": 8, "ts": 402, "dur": 1}`,
		`{"ph": "X", "cat": "kernel", "name": "negative", "pid": 0, "tid": 7, "ts": 403, "dur": -5}`,
		`{"ph": "X", "cat": "kernel", "name": "huge", "pid": 0, "tid": 7, "ts": 404, "dur": 99999999999999999999999}`,
		`{"ph": "X", "cat": "kernel", "name": "no time", "pid": 0, "tid": 7, "ts": "soon", "dur": 1}`,
		`{"ph": "X", "cat": "cpu_op", "name": "words", "pid": "Spans", "tid": "thread 12", "ts": 405, "dur": 1}`)))
	answers(t, db, map[string]string{
		"SELECT count(*) FROM span": "11",
		"SELECT count(*) FROM span WHERE duration_ns IS NULL AND end_method = 'imported'": "1",
		"SELECT max(len(name)) FROM span":                                                 fmt.Sprint(len(long)),
		"SELECT count(*) FROM warning WHERE kind = 'negative_duration'":                   "1",
		"SELECT tid FROM span WHERE name = 'words'":                                       "12",
		"SELECT count(*) FROM span WHERE name LIKE '%DROP TABLE span%'":                   "1",
		"SELECT count(*) FROM span WHERE name = 'no time'":                                "0",
		"SELECT duration_ns > 1e17 FROM span WHERE name = 'huge'":                         "true",
	})
}

func TestACancelledImportLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := filepath.Join(t.TempDir(), "d")
	if _, err := Import(ctx, []string{file(t, "t.json", trace(small))}, dir, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("left a dataset behind")
	}
}

func TestTimesAreReadToTheNanosecond(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1000, "1.5": 1500, "1419247332972.313": 1419247332972313, "0.0009": 0, "-2.25": -2250, `"7.001"`: 7001, "1e3": 1000000,
	} {
		if got, ok := micros([]byte(text)); !ok || got != want {
			t.Errorf("%s: %d, %t", text, got, ok)
		}
	}
	for _, text := range []string{"", "x", "1.2.3", "99999999999999999999", "1e400"} {
		if got, ok := micros([]byte(text)); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// FuzzScanner: whatever the bytes, the scanner ends and stays inside of them.
func FuzzScanner(f *testing.F) {
	f.Add([]byte(trace(small)))
	f.Add([]byte(`{"traceEvents": [{"a\"": "\\"}, 1, [2]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &kinetoPass{kineto: &kineto{left: map[string]int64{}}, calls: calls{}, kernels: kernels{}, texts: map[string]string{}, h: handler{
			row: func(*row) error { return nil }, edge: func(*edge) error { return nil }, memory: nil,
		}}
		p.h.memory = newNesting().addMemory
		p.each = p.event
		_ = p.document(newScanner(t.Context(), bytes.NewReader(data)))
	})
}

// shared is data that is not part of the repository.
func shared(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../../../shared/data", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not here: nothing foreign to compare with", name)
	}
	return path
}

func TestAnExportOfNsightHasItsCounts(t *testing.T) {
	db, _ := importFiles(t, shared(t, "nsys/h100_2gpu_1s.sqlite"))
	answers(t, db, map[string]string{
		"SELECT count(*) FROM span WHERE layer = 'device' AND category IN ('kernel', 'collective')": "3442",
		"SELECT count(*) FROM span WHERE layer = 'runtime'":                                         "5796",
		"SELECT count(*) FROM span WHERE layer IN ('op', 'scope', 'autograd', 'collective')":        "16782",
		"SELECT count(*) FROM span WHERE layer = 'device' AND category = 'copy'":                    "904",
		// Counted in the file with SQLite: kernels whose launch lies in the second.
		"SELECT count(launch_id) FROM span WHERE layer = 'device' AND category = 'kernel'": "1632",
		"SELECT count(DISTINCT device_id) FROM span WHERE layer = 'device'":                "2",
	})
}
