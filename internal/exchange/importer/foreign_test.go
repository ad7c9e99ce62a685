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

// loop are five steps of an operator with a launch and its kernel of 40 µs, a millisecond apart; change may replace
// an event by others.
func loop(change func(step int, kind, event string) string) string {
	var events []string
	add := func(step int, kind, event string) {
		if change != nil {
			event = change(step, kind, event)
		}
		if event != "" {
			events = append(events, event)
		}
	}
	for i := range 5 {
		at := 1.7e15 + 1000*float64(i)
		add(i, "op", fmt.Sprintf(
			`{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 8, "ts": %.1f, "dur": 50, "args": {"External id": %d}}`, at, i+1))
		add(i, "launch", fmt.Sprintf(
			`{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 8, "ts": %.1f, "dur": 5, "args": {"correlation": %d}}`,
			at+10, i+1))
		add(i, "kernel", fmt.Sprintf(
			`{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": %.1f, "dur": 40, "args": {"correlation": %d, "stream": 7, "device": 0}}`, at+30, i+1))
	}
	return strings.Join(events, ",\n")
}

func plainTrace(events string) string {
	return `{"schemaVersion": 1, "traceEvents": [` + events + `], "distributedInfo": {"rank": 3, "world_size": 8}}`
}

func packed(t *testing.T, text string, times int) string {
	t.Helper()
	for range times {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		text = z.String()
	}
	return text
}

// begun is an event with another begin.
func begun(event, ts string) string {
	from := strings.Index(event, `"ts": `) + len(`"ts": `)
	to := from + strings.IndexByte(event[from:], ',')
	return event[:from] + ts + event[to:]
}

func TestRowsAtImpossibleTimesAreNamedAndLeftOut(t *testing.T) {
	for _, ts := range []string{"0", "0.0", "-1", "-0.001", `"0"`, "1", "3600000000", "4.6e15", "1.8e15", "-1.7e15"} {
		db, summary := importFiles(t, file(t, "t.json", plainTrace(loop(func(step int, kind, event string) string {
			if kind == "kernel" && step%2 == 0 || kind == "op" && step == 4 {
				event = begun(event, ts)
			}
			return event
		}))))
		answers(t, db, map[string]string{
			"SELECT count(*) FROM span WHERE layer = 'device'":                            "2",
			"SELECT count(*) FROM span WHERE layer = 'op'":                                "4",
			"SELECT (max(ts_ns) - min(ts_ns)) // 1000 FROM span":                          "4010",
			"SELECT (ended_ns - started_ns) // 1000 FROM session":                         "4015",
			"SELECT count FROM warning WHERE kind = 'impossible_time'":                    "4",
			"SELECT count(*) FROM span WHERE launch_id NOT IN (SELECT span_id FROM span)": "0",
		})
		if len(summary.Warnings) != 1 || !strings.Contains(summary.Warnings[0].Detail, `3 × "gemm", 1 × "aten::mm"`) {
			t.Errorf("%s: %+v", ts, summary.Warnings)
		}
	}
}

// Traces whose clock begins with the profiler have rows at 0 and before it; a job may pause for minutes.
func TestRowsAtPossibleTimesStay(t *testing.T) {
	for name, shift := range map[string]float64{"from 0": 1.7e15, "over 0": 1.7e15 + 2000, "from -1": 1.7e15 + 1} {
		db, summary := importFiles(t, file(t, "t.json", plainTrace(loop(func(_ int, _, event string) string {
			var ts float64
			from := strings.Index(event, `"ts": `) + len(`"ts": `)
			if _, err := fmt.Sscanf(event[from:], "%f", &ts); err != nil {
				t.Fatal(err)
			}
			return begun(event, fmt.Sprintf("%.1f", ts-shift))
		}))))
		if got := one(t, db, "SELECT count(*) FROM span"); got != "15" || len(summary.Warnings) != 0 {
			t.Errorf("%s: %s rows, %v", name, got, summary.Warnings)
		}
	}
	db, _ := importFiles(t, file(t, "t.json", plainTrace(loop(func(step int, _, event string) string {
		if step < 2 {
			return event
		}
		return strings.Replace(event, `"ts": 17000000`, `"ts": 17000003`, 1) // five minutes later
	}))))
	if got := one(t, db, "SELECT count(*) FROM span"); got != "15" {
		t.Errorf("after a pause: %s rows", got)
	}
}

func TestADeviceWorksForTheProcessThatLaunches(t *testing.T) {
	var ranges []string
	for i := range 300 {
		ranges = append(ranges, fmt.Sprintf(`{"ph": "X", "cat": "requests", "name": "request", "pid": 99, "tid": 1, "ts": %d, "dur": 3}`,
			1700000000000000+10*i))
	}
	db, summary := importFiles(t, file(t, "t.json", plainTrace(strings.Join(ranges, ",")+","+loop(nil))))
	answers(t, db, map[string]string{
		"SELECT count(*) FROM span WHERE layer = 'device' AND pid = 7": "5",
		"SELECT string_agg(pid, ',') FROM process WHERE rank = 3":      "7",
		"SELECT framework FROM process WHERE pid = 99":                 "NULL",
		"SELECT count FROM warning WHERE source = 'requests'":          "300",
	})
	if len(summary.Warnings) != 1 || !strings.Contains(summary.Warnings[0].Detail, `unknown category "requests"`) {
		t.Errorf("%+v", summary.Warnings)
	}
}

func TestAFileThatIsCutIsImportedUpToThere(t *testing.T) {
	whole := plainTrace(loop(nil))
	second := strings.Index(whole, `"aten::mm", "pid": 7, "tid": 8, "ts": 1700000000001000`)
	for name, content := range map[string]string{
		"in a name":            whole[:second+4],
		"after a comma":        whole[:strings.LastIndex(whole[:second], "{")],
		"in a number":          whole[:second+45],
		"in CRLF":              strings.ReplaceAll(whole[:second+4], "\n", "\r\n"),
		"with a mark":          byteOrderMark + whole[:second+4],
		"and filled with NULs": whole[:strings.LastIndex(whole[:second], "{")] + strings.Repeat("\x00", 5000),
		"in gzip":              packed(t, whole[:second+4], 1),
		"in gzip of gzip":      packed(t, whole[:second+4], 2),
	} {
		db, summary := importFiles(t, file(t, "rank5.json", content))
		answers(t, db, map[string]string{
			"SELECT count(*) FROM span":                          "3",
			"SELECT rank FROM process":                           "5", // by the file's name: what the file says of it is missing
			"SELECT count(*) FROM warning WHERE kind = 'cut'":    "1",
			"SELECT count(*) FROM span WHERE launch_id NOT NULL": "1",
		})
		if len(summary.Warnings) != 1 || !strings.Contains(summary.Warnings[0].Detail, "ends in the middle after 3 events") {
			t.Errorf("%s: %+v", name, summary.Warnings)
		}
	}
	// Nothing but what stands behind the events is missing.
	db, summary := importFiles(t, file(t, "t.json", whole[:strings.Index(whole, `"distributedInfo"`)+20]))
	if got := one(t, db, "SELECT count(*) FROM span"); got != "15" || len(summary.Warnings) != 1 {
		t.Errorf("%s rows, %v", got, summary.Warnings)
	}
	// Chrome's format allows for a list without its end.
	db, summary = importFiles(t, file(t, "t.json", "["+loop(nil)+",\n"))
	if got := one(t, db, "SELECT count(*) FROM span"); got != "15" || len(summary.Warnings) != 0 {
		t.Errorf("a list without its end: %s rows, %v", got, summary.Warnings)
	}
}

func TestGzipThatIsCutIsImportedUpToThere(t *testing.T) {
	var events []string
	for i := range 20000 { // more than what gzip keeps back
		events = append(events, fmt.Sprintf(`{"ph": "X", "cat": "cpu_op", "name": "aten::mm%d", "pid": 7, "tid": 8, "ts": %d, "dur": 3}`,
			i*7919%20011, 1700000000000000+10*i))
	}
	z := packed(t, plainTrace(strings.Join(events, ",")), 1)
	for _, length := range []int{len(z) / 2, len(z) - 100} {
		db, summary := importFiles(t, file(t, "t.json.gz", z[:length]))
		rows := one(t, db, "SELECT count(*) > 5000 AND count(*) < 20000 FROM span")
		if rows != "true" || len(summary.Warnings) != 1 || summary.Warnings[0].Kind != "cut" {
			t.Errorf("%d bytes: %s, %v", length, rows, summary.Warnings)
		}
	}
}

func TestRanksWithoutEventsDoNotCostTheOthers(t *testing.T) {
	whole := plainTrace(loop(nil))
	for name, content := range map[string]string{
		"metadata alone":   plainTrace(`{"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "python"}}`),
		"an empty list":    `{"traceEvents": []}`,
		"an empty array":   "[]",
		"an empty file":    "",
		"cut at its begin": whole[:40],
		"a pointer":        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n",
	} {
		dir := t.TempDir()
		var files []string
		for rank, text := range []string{whole, content, whole} {
			text = strings.Replace(text, `"rank": 3`, fmt.Sprintf(`"rank": %d`, rank), 1)
			path := filepath.Join(dir, fmt.Sprintf("rank%d.json", rank))
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			files = append(files, path)
		}
		db, summary := importFiles(t, files...)
		if got := one(t, db, "SELECT string_agg(rank, ',' ORDER BY rank) FROM process"); got != "0,2" {
			t.Errorf("%s: ranks %s", name, got)
		}
		if len(summary.Warnings) != 1 || !strings.Contains(summary.Warnings[0].Detail, "rank1.json") {
			t.Errorf("%s: %+v", name, summary.Warnings)
		}
	}
}

func TestQuotationMarksInNamesAreMended(t *testing.T) {
	for _, name := range []string{
		`{"device": "cpu", "dtype": "float32"}(12): run`, `say "hello"`, `"`, `a "b`, `"quoted"`, `C:\path\`, `back\\slash "q"`, `] " [ " }`,
	} {
		db, summary := importFiles(t, file(t, "t.json", plainTrace(loop(func(step int, kind, event string) string {
			if kind == "op" && step != 2 {
				event = strings.Replace(event, "aten::mm", name, 1)
			}
			return event
		}))))
		answers(t, db, map[string]string{
			"SELECT count(*) FROM span":                                     "15",
			"SELECT count(DISTINCT name) FROM span WHERE layer = 'op'":      "2",
			"SELECT count(*) FROM span WHERE layer = 'op' AND pid = 7":      "5",
			"SELECT count(*) FROM span WHERE layer = 'runtime' AND tid = 8": "5",
		})
		if len(summary.Warnings) != 1 || summary.Warnings[0].Count != 4 {
			t.Errorf("%s: %+v", name, summary.Warnings)
		}
	}
}

func TestASyntaxErrorHasItsPlace(t *testing.T) {
	for content, place := range map[string]string{
		"{\"traceEvents\": [\n{\"ph\": \"X\"},\n{\"ph\" nope}\n]}":                         "line 3, byte 38",
		byteOrderMark + "{\"traceEvents\": [\r\n{\"ph\": \"X\"},\r\n{\"ph\" nope}\r\n]}":   "line 3, byte 43",
		"{\"traceEvents\": [\n{\"ph\": \"X\"}],\n1: 2}":                                    "line 3,",
		packed(t, "{\"traceEvents\": [\n{\"ph\": \"X\"},\n{\"ph\": \"X\", 3: 4}\n]}", 1):   "line 3, byte 44",
		"{\"traceEvents\": [\n{\"ph\": \"X\"},\n{\"ph\": \"X\"}\n, {\"cat\": \"a\" b}\n]}": "line 4,",
	} {
		_, err := Import(context.Background(), []string{file(t, "x", content)}, filepath.Join(t.TempDir(), "d"), Options{})
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), place) {
			t.Errorf("%v, want %s", err, place)
		}
	}
}

func TestOddValuesDoNotCostTheirEvents(t *testing.T) {
	huge := strings.Repeat("[1, 2, 3], ", 200_000)
	for name, change := range map[string]func(event string) string{
		"NaN and Infinity": func(e string) string {
			return strings.Replace(e, `"args": {`, `"args": {"occupancy": NaN, "rate": -Infinity, `, 1)
		},
		"duplicate keys":   func(e string) string { return strings.Replace(e, `"pid": `, `"pid": 1, "pid": `, 1) },
		"numbers as text":  func(e string) string { return strings.Replace(e, `"tid": 8`, `"tid": "8"`, 1) },
		"floating numbers": func(e string) string { return strings.Replace(e, `"pid": 7`, `"pid": 7.0`, 1) },
		"huge arguments":   func(e string) string { return strings.Replace(e, `"args": {`, `"args": {"values": [`+huge+`[]], `, 1) },
		"CRLF":             func(e string) string { return strings.ReplaceAll(e, ", ", ",\r\n  ") },
	} {
		db, summary := importFiles(t, file(t, "t.json", plainTrace(loop(func(step int, _, event string) string {
			if step == 1 || name != "huge arguments" {
				event = change(event)
			}
			return event
		}))))
		answers(t, db, map[string]string{
			"SELECT count(*) FROM span WHERE pid = 7":            "15",
			"SELECT count(*) FROM span WHERE tid = 8":            "10",
			"SELECT count(*) FROM span WHERE launch_id NOT NULL": "5",
			"SELECT sum(duration_ns) FROM span":                  "475000",
		})
		if len(summary.Warnings) != 0 {
			t.Errorf("%s: %v", name, summary.Warnings)
		}
	}
}

func TestLargeProcessNumbersStayApart(t *testing.T) {
	db, _ := importFiles(t, file(t, "t.json", plainTrace(`
		{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 4294967303, "tid": 140000000000001, "ts": 1, "dur": 2},
		{"ph": "X", "cat": "cpu_op", "name": "b", "pid": 7, "tid": 8, "ts": 1, "dur": 2},
		{"ph": "X", "cat": "cpu_op", "name": "c", "pid": 8589934599, "tid": 140000000000001, "ts": 1, "dur": 2}`)))
	if got := one(t, db, "SELECT count(DISTINCT pid) FROM span"); got != "3" {
		t.Errorf("%s processes of three", got)
	}
}

// deviceRows are the rows of devices, by category, device and name, with how many have a launch.
func deviceRows(t *testing.T, db *dataset.DB) string {
	t.Helper()
	return one(t, db, `SELECT string_agg(line, ', ' ORDER BY line)
		FROM (SELECT concat_ws(' ', category, device_id, count(*), sum(duration_ns) // 1000, count(launch_id)) AS line
		FROM span WHERE layer = 'device' GROUP BY category, device_id)`)
}

func TestDevicesOfAnyKindAreDevices(t *testing.T) {
	planes := func(kind string, late bool) string {
		names := fmt.Sprintf(
			`{"ph": "M", "pid": 3, "name": "process_name", "args": {"name": "/device:%s:1"}}, {"ph": "M", "pid": 3, "tid": 1, "name": "thread_name", "args": {"name": "Steps"}},
			{"ph": "M", "pid": 3, "tid": 2, "name": "thread_name", "args": {"name": "XLA Modules"}}, {"ph": "M", "pid": 3, "tid": 3, "name": "thread_name", "args": {"name": "XLA Ops"}},
			{"ph": "M", "pid": 70, "name": "process_name", "args": {"name": "/host:CPU"}}`, kind)
		rows := `{"ph": "X", "pid": 3, "tid": 1, "ts": 100, "dur": 90, "name": "0"}, {"ph": "X", "pid": 3, "tid": 2, "ts": 100, "dur": 90, "name": "jit_step(12)"},
			{"ph": "X", "pid": 3, "tid": 3, "ts": 100, "dur": 30, "name": "fusion.1"}, {"ph": "X", "pid": 3, "tid": 3, "ts": 130, "dur": 20, "name": "all-reduce-start.2"},
			{"ph": "X", "pid": 3, "tid": 3, "ts": 150, "dur": 40, "name": "while.3"}, {"ph": "X", "pid": 3, "tid": 3, "ts": 155, "dur": 10, "name": "copy.4"},
			{"ph": "X", "pid": 70, "tid": 5, "ts": 90, "dur": 10, "name": "PjitFunction(step)"}, {}`
		if late {
			return `{"traceEvents": [` + rows + "," + names + `]}`
		}
		return `{"traceEvents": [` + names + "," + rows + `]}`
	}
	for _, kind := range []string{"TPU", "MTIA", "XPU"} {
		for _, late := range []bool{false, true} {
			db, summary := importFiles(t, file(t, "t.json", planes(kind, late)))
			if got, want := deviceRows(t, db), "annotation 1 3 220 0, collective 1 1 20 0, copy 1 1 10 0, kernel 1 1 30 0"; got != want {
				t.Errorf("%s: %s, want %s", kind, got, want)
			}
			answers(t, db, map[string]string{
				"SELECT device_name FROM session":      kind,
				"SELECT framework FROM process":        "jax",
				"SELECT source FROM session":           "imported from JAX's profiler",
				"SELECT count(*) FROM process":         "1",
				"SELECT any_value(pid) FROM span":      "70",
				"SELECT count(*) FROM warning":         "0",
				"SELECT name FROM span WHERE tid <> 0": "PjitFunction(step)",
			})
			if len(summary.Warnings) != 0 {
				t.Errorf("%v", summary.Warnings)
			}
		}
	}
}

func TestDevicesWithoutACategoryAreFoundByTheirNames(t *testing.T) {
	for label, want := range map[string]string{"NPU": "kernel 0 5 200 5", "NPU 2": "kernel 2 5 200 5", "XPU 1": "kernel 1 5 200 5",
		"MTIA 3": "kernel 3 5 200 5"} {
		arrows := 0
		names := fmt.Sprintf(
			`{"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "Python"}}, {"ph": "M", "name": "process_labels", "pid": 7, "args": {"labels": "CPU"}},
			{"ph": "M", "name": "process_name", "pid": 4100005, "args": {"name": "Hardware"}}, {"ph": "M", "name": "process_labels", "pid": 4100005, "args": {"labels": %q}},
			{"ph": "M", "name": "thread_name", "pid": 4100005, "tid": 7, "args": {"name": "Stream 7"}}, {"ph": "M", "name": "thread_name", "pid": 4100005, "tid": 2, "args": {"name": "Computing"}},`, label)
		db, _ := importFiles(t, file(t, "t.json", "["+names+loop(func(step int, kind, event string) string {
			at := fmt.Sprintf("%.1f", 1.7e15+1000*float64(step))
			switch kind {
			case "launch":
				return ""
			case "kernel":
				arrows++
				event = strings.Replace(event, `"cat": "kernel", `, "", 1)
				event = strings.Replace(event, `"pid": 0`, `"pid": 4100005`, 1)
				event = strings.Replace(event, `"correlation"`, `"connection_id"`, 1)
				event = strings.Replace(event, `, "stream": 7, "device": 0`, "", 1)
				begin := event[strings.Index(event, `"ts": `)+6:]
				begin = begin[:strings.IndexByte(begin, ',')]
				return fmt.Sprintf(`{"ph": "s", "cat": "async_npu", "id": "%d", "pid": 7, "tid": 8, "ts": "%s", "name": "async_npu"},
					{"ph": "f", "cat": "async_npu", "id": "%d", "pid": 4100005, "tid": 7, "ts": "%s", "name": "async_npu", "bp": "e"},`, arrows, at,
					arrows, begin) +
					begun(event, `"`+begin+`"`)
			}
			return begun(event, `"`+at+`"`)
		})+"]"))
		if got := deviceRows(t, db); got != want {
			t.Errorf("%s: %s, want %s", label, got, want)
		}
		kind, _, _ := strings.Cut(label, " ")
		answers(t, db, map[string]string{
			"SELECT device_name FROM session": kind,
			"SELECT count(*) FROM process":    "1",
			"SELECT count(*) FROM span d JOIN span o ON o.span_id = d.launch_id AND o.name = 'aten::mm'": "5",
		})
	}
}

// The profiler before Kineto knew two processes: functions of the CPU and of CUDA.
func TestATraceOfTheLegacyProfilerHasOperatorsAndKernels(t *testing.T) {
	var events []string
	for i, name := range []string{"aten::mm", "add_", "AddmmBackward", "torch::autograd::AccumulateGrad", "Optimizer.step#SGD.step"} {
		at := 100 + 50*float64(i)
		events = append(events, fmt.Sprintf(`{"name": %q, "ph": "X", "ts": %.1f, "dur": 30.5, "tid": 1, "pid": "CPU functions", "args": {}},
			{"name": %q, "ph": "s", "ts": %.1f, "tid": 1, "pid": "CPU functions", "id": %d, "cat": "cpu_to_cuda", "args": {}},
			{"name": %q, "ph": "f", "ts": %.1f, "tid": 1, "pid": "CUDA functions", "id": %d, "cat": "cpu_to_cuda", "args": {}},
			{"name": %q, "ph": "X", "ts": %.1f, "dur": 20, "tid": 1, "pid": "CUDA functions", "args": {}}`, name, at, name, at, i, name, at+20, i,
			name, at+20))
	}
	db, _ := importFiles(t, file(t, "t.json", "["+strings.Join(events, ", ")+"]"))
	if got, want := deviceRows(t, db), "kernel 1 5 100 5"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	answers(t, db, map[string]string{
		"SELECT string_agg(layer, ' ' ORDER BY ts_ns) FROM span WHERE layer <> 'device'": "op op autograd autograd scope",
		"SELECT framework FROM process": "pytorch",
		"SELECT count(*) FROM span d JOIN span o ON o.span_id = d.launch_id AND o.name = d.name": "5",
	})
}
