package report

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/exchange/importer"
)

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

func imported(t *testing.T, files ...string) *dataset.DB {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	if _, err := importer.Import(context.Background(), files, dir, importer.Options{}); err != nil {
		t.Fatal(err)
	}
	db, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func built(t *testing.T, db *dataset.DB) *Report {
	t.Helper()
	r, err := Build(t.Context(), db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const bert = "kineto/gaunernst_bert-small-uncased__1016001"

// answers are the rows of one of TraceLens's tables about the trace.
func answers(t *testing.T, name string) (rows []map[string]string) {
	t.Helper()
	f, err := os.Open(filepath.Join(shared(t, bert+"_perf_report_csvs"), name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range all[1:] {
		row := map[string]string{}
		for i, cell := range record {
			row[all[0][i]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}

func value(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance }

// TestDeviceTimesAreThoseOfTraceLens to one microsecond: its sums are of float64
// microseconds.
func TestDeviceTimesAreThoseOfTraceLens(t *testing.T) {
	d := built(t, imported(t, shared(t, bert+".json.gz"))).Device
	for _, row := range answers(t, "gpu_timeline.csv") {
		got, known := map[string]float64{
			"computation_time": d.ComputationMS, "exposed_comm_time": d.ExposedCommunicationMS, "exposed_memcpy_time": d.ExposedMemcpyMS,
			"busy_time": d.BusyMS, "idle_time": d.IdleMS, "total_time": d.TotalMS, "total_comm_time": d.CommunicationMS,
			"total_memcpy_time": d.MemcpyMS,
		}[row["type"]]
		if !known || !near(got, value(t, row["time ms"]), 1e-3) {
			t.Errorf("%s: %f ms, want %s", row["type"], got, row["time ms"])
		}
	}
}

func TestFLOPsAndBytesOfEveryShapeAreThoseOfTraceLens(t *testing.T) {
	db := imported(t, shared(t, bert+".json.gz"))
	checked := 0
	for _, name := range []string{"GEMM.csv", "SDPA_fwd.csv"} {
		for _, row := range answers(t, name) {
			var dims any
			if err := json.Unmarshal([]byte(row["Input Dims_first"]), &dims); err != nil {
				t.Fatal(err)
			}
			compact, _ := json.Marshal(dims)
			var calls int64
			var flops, bytes float64
			err := db.Row(t.Context(), `SELECT count(*), any_value(flops)::DOUBLE, any_value(bytes_moved)::DOUBLE FROM span
				WHERE name = ? AND input_dims = ?`,
				[]any{row["name"], string(compact)}, &calls, &flops, &bytes)
			if err != nil {
				t.Fatal(err)
			}
			wantFLOPs, wantBytes := value(t, row["GFLOPS_first"])*1e9, value(t, row["Data Moved (MB)_first"])*(1<<20)
			if float64(calls) != value(t, row["name_count"]) || !near(flops/wantFLOPs, 1, 1e-6) || !near(bytes/wantBytes, 1, 1e-6) {
				t.Errorf("%s %s: %d calls, %f FLOP, %f bytes; want %s, %f, %f", row["name"], compact, calls, flops, bytes, row["name_count"], wantFLOPs,
					wantBytes)
			}
			checked++
		}
	}
	if checked < 5 {
		t.Errorf("%d shapes compared", checked)
	}
}

func TestOperatorsAndKernelsByTimeAreThoseOfTraceLens(t *testing.T) {
	r := built(t, imported(t, shared(t, bert+".json.gz")))
	operators := map[string]Operator{}
	for _, o := range r.Operators {
		operators[o.Name] = o
	}
	for i, row := range answers(t, "ops_summary.csv") {
		o := operators[row["name"]]
		if o.DeviceMS == nil || !near(*o.DeviceMS, value(t, row["total_direct_kernel_time_ms"]), 1e-3) || o.Calls < value(t, row["Count"]) {
			t.Errorf("%s: %+v, want %s", row["name"], o, row["total_direct_kernel_time_ms"])
		}
		if r.Operators[i].Name != row["name"] {
			t.Errorf("operator %d is %s, want %s", i, r.Operators[i].Name, row["name"])
		}
	}
	want := map[string]struct {
		us    float64
		calls int64
	}{}
	for _, row := range answers(t, "kernel_summary.csv") {
		k := want[row["Kernel name"]]
		k.us += value(t, row["Kernel duration (µs)_sum"])
		k.calls += int64(value(t, row["Kernel duration (µs)_count"]))
		want[row["Kernel name"]] = k
	}
	for _, k := range r.Kernels {
		w, known := want[k.Name]
		if k.Category != "kernel" && !known {
			continue // their table has kernels only
		}
		if !known || k.Calls != w.calls || !near(k.DeviceMS*1e3, w.us, 1e-3) {
			t.Errorf("%s: %d calls, %f µs; want %d, %f", k.Name, k.Calls, k.DeviceMS*1e3, w.calls, w.us)
		}
		delete(want, k.Name)
	}
	for name := range want {
		t.Errorf("no kernel %s", name)
	}
}

// events are the trace's own, as JSON has them.
func events(t *testing.T) (document map[string]any, all []any) {
	t.Helper()
	f, err := os.Open(shared(t, bert+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	return document, document["traceEvents"].([]any)
}

// TestSevenCorruptDurationsAreLeftOutAndSharesStay repeats the trace a hundred
// times in time, so that seven rows are as few as they are in the field, and
// damages seven in the ways that were seen there.
func TestSevenCorruptDurationsAreLeftOutAndSharesStay(t *testing.T) {
	document, all := events(t)
	const repeats, period = 100, 5000.0
	many := func(damage bool) string {
		random := rand.New(rand.NewPCG(1, 2))
		var out []any
		var kernels []map[string]any
		for i := range repeats {
			for _, e := range all {
				row := e.(map[string]any)
				if row["ph"] != "X" || row["cat"] == "Trace" {
					continue
				}
				again := map[string]any{}
				for k, v := range row {
					again[k] = v
				}
				again["ts"] = json.Number(fmt.Sprintf("%.3f", row["ts"].(float64)-1419247332000+float64(i)*period))
				if args, ok := row["args"].(map[string]any); ok {
					shifted := map[string]any{}
					for k, v := range args {
						shifted[k] = v
					}
					for _, key := range []string{"correlation", "External id"} {
						if id, ok := args[key].(float64); ok {
							shifted[key] = int64(id) + int64(i)*100_000
						}
					}
					again["args"] = shifted
				}
				if row["cat"] == "kernel" {
					kernels = append(kernels, again)
				}
				out = append(out, again)
			}
		}
		if damage {
			for i, bad := range []any{9e15, 3e8, -7.5, 0, 250_000.0, 40_000.0, 1e12} {
				kernels[random.IntN(len(kernels)/7)+i*len(kernels)/7]["dur"] = bad
			}
		}
		copied := map[string]any{}
		for k, v := range document {
			copied[k] = v
		}
		copied["traceEvents"] = out
		data, err := json.Marshal(copied)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "t.json")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	clean, damaged := built(t, imported(t, many(false))), built(t, imported(t, many(true)))
	if clean.Rows.LeftOut != 0 {
		t.Errorf("of the clean trace: %s", clean.Rows.Sentence)
	}
	if damaged.Rows.LeftOut != 7 {
		t.Errorf("%s", damaged.Rows.Sentence)
	}
	t.Log(damaged.Rows.Sentence)
	for name, of := range map[string]func(*Device) float64{
		"computation": func(d *Device) float64 { return d.ComputationMS }, "idle": func(d *Device) float64 { return d.IdleMS },
		"copies": func(d *Device) float64 { return d.ExposedMemcpyMS }, "busy": func(d *Device) float64 { return d.BusyMS },
	} {
		before, after := 100*of(clean.Device)/clean.Device.TotalMS, 100*of(damaged.Device)/damaged.Device.TotalMS
		if !near(before, after, 0.5) {
			t.Errorf("%s: %f %%, was %f %%", name, after, before)
		}
	}
}

// TestSharesStayWhereAnyDurationsAreCorrupt damages the trace itself, of a single step:
// seven of its rows, of any kind. Each is left out, and shares of operators, kernels and
// the device stay, since a call with others of its name counts as they do. Calls that
// have none do not count at all: those are not damaged here.
func TestSharesStayWhereAnyDurationsAreCorrupt(t *testing.T) {
	document, all := events(t)
	alike := map[string][]map[string]any{}
	for _, e := range all {
		row := e.(map[string]any)
		switch row["cat"] {
		case "kernel", "cpu_op", "cuda_runtime":
			key := fmt.Sprint(row["cat"], row["name"])
			if args, ok := row["args"].(map[string]any); ok && row["cat"] == "kernel" {
				key += fmt.Sprint(args["grid"], args["block"])
			}
			alike[key] = append(alike[key], row)
		}
	}
	var usual []map[string]any
	for _, key := range slices.Sorted(maps.Keys(alike)) {
		if len(alike[key]) >= 4 {
			usual = append(usual, alike[key]...)
		}
	}
	if len(usual) < 500 {
		t.Fatalf("%d rows have others of their name", len(usual))
	}
	file := func() string {
		data, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "t.json")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	clean := sharesOf(built(t, imported(t, file())))
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 3))
		undo := map[int]any{}
		bad := []any{9e15, 3e8, -7.5, -1.0, 250_000.0, 1e12, -1e9}
		for len(undo) < len(bad) {
			i := random.IntN(len(usual))
			if _, twice := undo[i]; !twice {
				undo[i], usual[i]["dur"] = usual[i]["dur"], bad[len(undo)]
			}
		}
		damaged := built(t, imported(t, file()))
		if damaged.Rows.LeftOut != 7 || damaged.Rows.Replaced != 7 || !strings.HasSuffix(damaged.Rows.Sentence,
			"count with the median times of their like") {
			t.Errorf("seed %d: %s", seed, damaged.Rows.Sentence)
		}
		shares := sharesOf(damaged)
		for name, before := range clean {
			if after := shares[name]; !near(before, after, 0.5) {
				t.Errorf("seed %d: %s: %.2f %%, was %.2f %%", seed, name, after, before)
			}
		}
		for i, dur := range undo {
			usual[i]["dur"] = dur
		}
	}
}

// sharesOf are percent of the time of all operators and kernels, and of the device's.
func sharesOf(r *Report) map[string]float64 {
	var self, total, kernels, launched float64
	for _, o := range r.Operators {
		self, total, launched = self+o.SelfMS, total+o.TotalMS, launched+max(0, orNone(o.DeviceMS))
	}
	for _, k := range r.Kernels {
		kernels += k.DeviceMS
	}
	shares := map[string]float64{"busy": 100 * r.Device.BusyMS / r.Device.TotalMS, "idle": 100 * r.Device.IdleMS / r.Device.TotalMS}
	for _, o := range r.Operators {
		shares["self "+o.Name], shares["total "+o.Name] = 100*o.SelfMS/self, 100*o.TotalMS/total
		shares["device "+o.Name] = 100 * max(0, orNone(o.DeviceMS)) / launched
	}
	for _, k := range r.Kernels {
		shares["kernel "+k.Name] = 100 * k.DeviceMS / kernels
	}
	return shares
}

// TestForeignTracesWithFewStepsOrNoneAreAnswered: a single step of a model whose host launches too slowly, and a second of
// two devices that copy nearly all the time, in which no step was found or few were.
func TestForeignTracesWithFewStepsOrNoneAreAnswered(t *testing.T) {
	one := built(t, imported(t, shared(t, "kineto/gaunernst_bert-small-uncased__1016001.json.gz")))
	if len(one.Findings) == 0 || one.Findings[0].Rule != "host_bound" || one.Findings[0].FromSteps == nil || *one.Findings[0].FromSteps != 1 {
		t.Errorf("%+v", one.Findings)
	}
	if !strings.HasPrefix(one.Verdict, "The device is idle 92 % of 3.91 ms. Mending host bound") {
		t.Error(one.Verdict)
	}
	second := built(t, imported(t, shared(t, "nsys/h100_2gpu_1s.sqlite")))
	if !strings.HasPrefix(second.Verdict, "Each of the 2 devices spends 97 % of 969.35 ms in copies that nothing hides") {
		t.Error(second.Verdict)
	}
	if i := slices.IndexFunc(second.Findings, func(f findings.Finding) bool { return f.Rule == "exposed_copies" }); i < 0 {
		t.Errorf("%+v", second.Findings)
	}
}
