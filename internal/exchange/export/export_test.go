package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/exchange/importer"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testcache"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func shared(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../../../shared/data", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not here: nothing foreign to export", name)
	}
	return path
}

const (
	bert = "kineto/gaunernst_bert-small-uncased__1016001.json.gz"
	nsys = "nsys/h100_2gpu_1s.sqlite"
)

func opened(t *testing.T, dir string) *dataset.DB {
	t.Helper()
	db, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func imported(t *testing.T, file string) *dataset.DB {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	if _, err := importer.Import(context.Background(), []string{file}, dir, importer.Options{}); err != nil {
		t.Fatal(err)
	}
	return opened(t, dir)
}

func written(t *testing.T, db *dataset.DB, format string, o Options) (path string, r *Result) {
	t.Helper()
	var b bytes.Buffer
	r, err := Write(t.Context(), db, &b, format, o)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "rank0.json")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path, r
}

// recorded has rows that overlap without standing in each other, one without an
// end, one that is damaged, and an edge.
func recorded(t *testing.T) *dataset.DB {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	call := func(layer, name string) *event.Call { return &event.Call{Layer: layer, Name: name} }
	row := func(id, ts, duration int64, c *event.Call) event.Span {
		return event.Span{ID: id, StartNS: 1e18 + ts, DurationNS: duration, PID: 5, TID: 6, Call: c, Weight: 1, SequenceNumber: -1}
	}
	open := row(6, 900, -1, call("collective", "all_reduce"))
	open.End = event.EndUnfinished
	damaged := row(7, 950, -1, call("op", "aten::damaged"))
	damaged.End = event.EndImported
	hostile := row(8, 100, 5, call("op", "a\";\n\x1b[31m\xff"))
	err = errors.Join(
		d.Session(event.Recording{ID: "s"}),
		d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 5, Command: "train"}}}),
		d.Write(&event.Batch{Spans: []event.Span{
			row(1, 0, 1000, call("scope", "step")), row(2, 10, 50, call("op", "aten::mm")), row(3, 40, 100, call("op", "crosses")),
			row(4, 10, 50, call("op", "aten::same")), row(5, 600, 10, &event.Call{Layer: "autograd", Category: "node", Name: "MmBackward0"}),
			open, damaged, hostile,
		}}),
		d.Write(&event.Batch{Flows: []event.Flow{{TSNS: 1e18, FromSpanID: 2, ToSpanID: 5, Kind: "forward_backward"}}}),
		d.Close())
	if err != nil {
		t.Fatal(err)
	}
	return opened(t, d.Dir())
}

// reader is the interpreter that has the foreign readers.
func reader(t *testing.T) string {
	t.Helper()
	return testcache.Path(t, "readers/bin/python", "what reads exports is not installed: run `make readers`")
}

func python(t *testing.T, script string, arguments ...string) string {
	t.Helper()
	// Answers stand on standard output; what libraries complain of, and when, is no part of them.
	command := exec.Command(reader(t), append([]string{filepath.Join("testdata", script)}, arguments...)...)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, out, complaints.String())
	}
	return string(out)
}

func number(t *testing.T, db *dataset.DB, sql string) (n int64) {
	t.Helper()
	if err := db.Row(t.Context(), sql, nil, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSlicesOutAreSpansIn as Perfetto's own messages read them.
func TestSlicesOutAreSpansIn(t *testing.T) {
	reader(t)
	for name, db := range map[string]func() *dataset.DB{
		"a trace of torch.profiler": func() *dataset.DB { return imported(t, shared(t, bert)) },
		"an export of Nsight":       func() *dataset.DB { return imported(t, shared(t, nsys)) },
		"a recording":               func() *dataset.DB { return recorded(t) },
	} {
		t.Run(name, func(t *testing.T) {
			db := db()
			path, result := written(t, db, "perfetto", Options{})
			var got struct {
				Device, Slices, Open, Unopened, Nameless, Disordered, Flows int64
				WithoutTrack                                                int64 `json:"without_track"`
				Loose                                                       int64 `json:"loose_flows"`
				Total                                                       int64 `json:"total_ns"`
			}
			if err := json.Unmarshal([]byte(python(t, "slices.py", path)), &got); err != nil {
				t.Fatal(err)
			}
			damaged := number(t, db, "SELECT count(*) FROM span WHERE duration_ns IS NULL AND end_method <> 'unfinished'")
			if got.Slices+got.Device != result.Spans-damaged || result.Slices != result.Spans-damaged {
				t.Errorf("%d slices and %d stages of %d spans, %d of them damaged; %+v", got.Slices, got.Device, result.Spans, damaged, result)
			}
			if got.Open+got.Unopened+got.Nameless+got.Disordered+got.WithoutTrack+got.Loose != 0 {
				t.Errorf("%+v", got)
			}
			unfinished := number(t, db, "SELECT coalesce(sum((SELECT max(ts_ns + coalesce(duration_ns, 0)) FROM span) - ts_ns), 0)::BIGINT FROM "+
				"span WHERE end_method = 'unfinished'")
			if want := number(t, db, "SELECT sum(duration_ns)::BIGINT FROM span") + unfinished; got.Total != want {
				t.Errorf("%d ns in slices, %d in spans", got.Total, want)
			}
			if want := number(t, db, "SELECT count(*) FROM flow"); got.Flows != want {
				t.Errorf("%d flows, want %d", got.Flows, want)
			}
		})
	}
}

// TestATraceComesBackTheSame through our own import: times to the nanosecond.
func TestATraceComesBackTheSame(t *testing.T) {
	const rows = `SELECT string_agg(r, chr(10) ORDER BY r)
		FROM (SELECT concat_ws('|', layer, coalesce(category, ''), name, ts_ns, duration_ns, pid,
		CASE WHEN layer = 'device' THEN stream ELSE tid END, coalesce(sequence_number, -1), coalesce(input_dims, ''), coalesce(flops, -1),
		coalesce(bytes, -1),
		coalesce(correlation_id, -1), coalesce(device_id, -1), coalesce(grid_x, -1), launch_id IS NOT NULL, parent_id IS NOT NULL) AS r
		FROM span)`
	const memory = `SELECT string_agg(r, chr(10) ORDER BY r)
		FROM (SELECT concat_ws('|', ts_ns, pid, tid, space, action, address, bytes, coalesce(total_allocated_bytes, -1)) AS r FROM memory)`
	first := imported(t, shared(t, bert))
	path, _ := written(t, first, "kineto", Options{})
	second := imported(t, path)
	for name, sql := range map[string]string{"span": rows, "memory": memory} {
		var a, b string
		if err := errors.Join(first.Row(t.Context(), sql, nil, &a), second.Row(t.Context(), sql, nil, &b)); err != nil {
			t.Fatal(err)
		}
		before, after := strings.Split(a, "\n"), strings.Split(b, "\n")
		if len(before) != len(after) {
			t.Fatalf("%s: %d rows became %d", name, len(before), len(after))
		}
		for i := range before {
			if before[i] != after[i] {
				t.Fatalf("%s:\n%s\nbecame\n%s", name, before[i], after[i])
			}
		}
	}
}

func TestTraceinsightFindsTheSameTimes(t *testing.T) {
	reader(t)
	db := imported(t, shared(t, bert))
	path, _ := written(t, db, "kineto", Options{})
	out := python(t, "kineto.py", filepath.Dir(path))
	_, answer, ok := strings.Cut(out, "answer ")
	var raw map[string]float64
	answer, _, _ = strings.Cut(answer, "\n") // what it prints while it ends comes behind
	if !ok || json.Unmarshal([]byte(answer), &raw) != nil {
		t.Fatal(out)
	}
	// Its times are whole microseconds, up to one off at each end of 61 rows.
	if d := raw["busy_us"] - 309.4; d < -61 || d > 61 {
		t.Errorf("busy for %f µs", raw["busy_us"])
	}
	if d := raw["total_us"] - 3907.8; d < -2 || d > 2 {
		t.Errorf("%f µs in all", raw["total_us"])
	}
	if int64(raw["events"]) < number(t, db, "SELECT count(*) FROM span WHERE layer <> 'python'") {
		t.Errorf("it read %f events", raw["events"])
	}
}

func TestPyTorchsValidatorFindsNothing(t *testing.T) {
	home, _ := os.UserHomeDir()
	found, _ := filepath.Glob(filepath.Join(home, ".cache/ebpfprof/torch-venv/lib/python3*/site-packages/torch/profiler/_trace_validator.py"))
	if len(found) == 0 {
		t.Skip("no PyTorch with a validator is installed: run `make torch`")
	}
	for _, name := range []string{bert, nsys} {
		path, _ := written(t, imported(t, shared(t, name)), "kineto", Options{})
		if out := strings.TrimSpace(python(t, "validator.py", found[0], path)); out != "[]" {
			t.Errorf("%s: %s", name, out)
		}
	}
}

func TestStacksAddUpToTheTimeInEachForm(t *testing.T) {
	db := imported(t, shared(t, bert))
	want := number(t, db, "SELECT sum(duration_ns)::BIGINT FROM span WHERE layer = 'device' AND category <> 'annotation'")
	path, _ := written(t, db, "folded", Options{})
	text, _ := os.ReadFile(path)
	var folded, lines int64
	for line := range strings.Lines(string(text)) {
		var us int64
		fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &us)
		folded += us * 1000
		lines++
	}
	path, _ = written(t, db, "pprof", Options{})
	file, _ := os.Open(path)
	defer file.Close()
	p, err := profile.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	var samples int64
	for _, s := range p.Sample {
		samples += s.Value[1]
	}
	path, _ = written(t, db, "otlp", Options{})
	content, _ := os.ReadFile(path)
	profiles, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(content)
	if err != nil {
		t.Fatal(err)
	}
	one := profiles.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	var sent int64
	for _, s := range one.Samples().All() {
		sent += s.Values().At(0)
	}
	if max(folded-want, want-folded) > 500*lines || samples != want || sent != want || len(p.Sample) != one.Samples().Len() {
		t.Errorf("folded %d, pprof %d, OTLP %d, want %d ns", folded, samples, sent, want)
	}
	// Leaf first, as pprof has it.
	d := profiles.Dictionary()
	for i, s := range p.Sample {
		stack := d.StackTable().At(int(one.Samples().At(i).StackIndex())).LocationIndices()
		if stack.Len() != len(s.Location) {
			t.Fatalf("%d frames, not %d", stack.Len(), len(s.Location))
		}
		for j, l := range s.Location {
			f := d.FunctionTable().At(int(d.LocationTable().At(int(stack.At(j))).Lines().At(0).FunctionIndex()))
			if name := d.StringTable().At(int(f.NameStrindex())); name != l.Line[0].Function.Name {
				t.Errorf("frame %d of sample %d is %q, not %q", j, i, name, l.Line[0].Function.Name)
			}
		}
	}
}

func TestGoToolPprofReadsTheProfile(t *testing.T) {
	path, _ := written(t, imported(t, shared(t, bert)), "pprof", Options{})
	out, err := exec.Command("go", "tool", "pprof", "-top", path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "309.44us total") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestSpeedscopesSchemaHolds(t *testing.T) {
	schema := filepath.Join(filepath.Dir(filepath.Dir(reader(t))), "node_modules/speedscope/dist/release/file-format-schema.json")
	if _, err := os.Stat(schema); err != nil {
		t.Skip("speedscope is not installed: run `make readers` where npm is")
	}
	path, _ := written(t, imported(t, shared(t, bert)), "speedscope", Options{})
	python(t, "schema.py", schema, path)
}

func TestWhatDoesNotFitIsCountedAndSaid(t *testing.T) {
	db := imported(t, shared(t, bert))
	for _, format := range []string{"perfetto", "kineto", "speedscope"} {
		limit := int64(20_000)
		if format == "speedscope" {
			limit = 2000
		}
		path, result := written(t, db, format, Options{MaxBytes: limit})
		info, _ := os.Stat(path)
		if len(result.LeftOut) == 0 || !strings.Contains(strings.Join(result.LeftOut, " "), "fit") || info.Size() > 5*limit {
			t.Errorf("%s: %d bytes, %+v", format, info.Size(), result)
		}
	}
}

// TestAPerfettoTraceComesBack through our own import: the rows of each layer, their times, and who launched what. The
// form has no process of a device's row, so that waits of a rank on another's device have none.
func TestAPerfettoTraceComesBack(t *testing.T) {
	const rows = `SELECT string_agg(r, chr(10) ORDER BY r)
		FROM (SELECT concat_ws('|', layer, count(*), sum(duration_ns), count(launch_id), count(DISTINCT name)) AS r
		FROM span WHERE duration_ns IS NOT NULL AND layer IN ('op', 'runtime', 'device')
			AND category IS DISTINCT FROM 'sync' GROUP BY layer)`
	for name, source := range map[string]string{"a trace of torch.profiler": bert, "an export of Nsight": nsys} {
		first := imported(t, shared(t, source))
		path, _ := written(t, first, "perfetto", Options{})
		second := imported(t, path)
		var a, b string
		if err := errors.Join(first.Row(t.Context(), rows, nil, &a), second.Row(t.Context(), rows, nil, &b)); err != nil {
			t.Fatal(err)
		}
		if a != b {
			t.Errorf("%s:\n%s\nbecame\n%s", name, a, b)
		}
	}
}
