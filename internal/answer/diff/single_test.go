package diff

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/verdict"
	"github.com/ebpfprof/ebpfprof/internal/exchange/importer"
)

// call is an operator that launches one kernel.
type call struct {
	operator, kernel string
	us               float64
}

// model is a made-up one, as a device of NVIDIA runs it.
var model = []call{
	{"aten::cudnn_convolution", "sm80_xmma_fprop_implicit_gemm_bf16f32", 400},
	{"aten::addmm", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", 300},
	{"aten::_flash_attention_forward", "pytorch_flash::flash_fwd_kernel", 900},
	{"aten::addmm", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", 300},
	{"aten::native_layer_norm", "vectorized_layer_norm_kernel", 100},
}

// onAMD is the same model there.
var onAMD = []call{
	{"aten::miopen_convolution", "igemm_fwd_gtcx3_nhwc_bf16", 500},
	{"aten::addmm", "Cijk_Alik_Bljk_BBS_BH_MT128x128x64", 260},
	{"aten::_flash_attention_forward", "attn_fwd", 1700},
	{"aten::addmm", "Cijk_Alik_Bljk_BBS_BH_MT128x128x64", 260},
	{"aten::native_layer_norm", "vectorized_layer_norm_kernel", 130},
}

// with is the model with another duration of one kind of call.
func with(calls []call, operator string, factor float64) (changed []call) {
	for _, c := range calls {
		if c.operator == operator {
			c.us *= factor
		}
		changed = append(changed, c)
	}
	return changed
}

// traced writes a trace of steps of that model, each operator of which takes the host so
// long; marked says whether the steps have marks. The host is never waited for.
func traced(t *testing.T, steps int, marked bool, host float64, calls []call) *Side {
	t.Helper()
	var rows []map[string]any
	now, device, correlation := 1000.0, 0.0, 0
	for step := range steps {
		begin := now
		for _, c := range calls {
			correlation++
			ids := map[string]any{"correlation": correlation, "device": 0, "stream": 7}
			rows = append(rows, map[string]any{"ph": "X", "cat": "cpu_op", "name": c.operator, "pid": 7, "tid": 7, "ts": now, "dur": host - 1},
				map[string]any{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": now + 1, "dur": 2,
					"args": map[string]any{"correlation": correlation}})
			device = math.Max(device+1, now+5)
			rows = append(rows, map[string]any{"ph": "X", "cat": "kernel", "name": c.kernel, "pid": 0, "tid": 7, "ts": device, "dur": c.us,
				"args": ids})
			device += c.us
			now += host
		}
		if marked {
			rows = append(rows, map[string]any{"ph": "X", "cat": "user_annotation", "name": fmt.Sprintf("ProfilerStep#%d", step+3), "pid": 7,
				"tid": 7, "ts": begin, "dur": now - begin})
		}
	}
	return sideOfFile(t, map[string]any{"traceEvents": rows})
}

func sideOfFile(t *testing.T, document map[string]any) *Side {
	t.Helper()
	data, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "t.json")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return sideOfImport(t, path)
}

func sideOfImport(t *testing.T, path string) *Side {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	if _, err := importer.Import(context.Background(), []string{path}, dir, importer.Options{}); err != nil {
		t.Fatal(err)
	}
	return sideOf(t, dir)
}

const attention = "aten::_flash_attention_forward"

func TestASingleStepEndsWithItsWorkOnTheDevice(t *testing.T) {
	before := traced(t, 1, true, 20, model)
	for name, c := range map[string]struct {
		after   *Side
		verdict verdict.Verdict
		first   string
	}{
		"attention in half the time":  {traced(t, 1, true, 20, with(model, attention, 0.5)), verdict.Improvement, attention},
		"attention in twice the time": {traced(t, 1, true, 20, with(model, attention, 2)), verdict.Regression, attention},
		"products on another type":    {traced(t, 1, true, 20, with(model, "aten::addmm", 0.4)), verdict.Improvement, "aten::addmm"},
		"one call instead of two":     {traced(t, 1, true, 20, model[1:]), verdict.Improvement, "aten::cudnn_convolution"},
		"the same":                    {before, verdict.Neutral, ""},
		"a percent more":              {traced(t, 1, true, 20, with(with(model, attention, 1.01), "aten::addmm", 1.01)), verdict.Neutral, ""},
	} {
		r := Compare(before, c.after, 3)
		if r.Verdict != c.verdict || c.first != "" && (r.Rows[0].Kind != "operator" || r.Rows[0].Key != c.first || !r.Rows[0].Significant ||
			!strings.Contains(r.Sentence, c.first)) {
			t.Errorf("%s: %s %+v", name, r.Sentence, r.Rows[0])
		}
		if r.Confidence != Low || c.verdict != verdict.Neutral && !strings.Contains(r.Sentence, "is not known from so few") {
			t.Errorf("%s: how sure that is: %q, %s", name, r.Confidence, r.Sentence)
		}
	}
}

// The host's own steps take 0.1 ms, whatever the device does.
func TestStepsOfAHostThatIsAheadAreTimedByTheDevice(t *testing.T) {
	for _, n := range []int{2, 6} {
		r := Compare(traced(t, n, true, 20, model), traced(t, n, true, 20, with(model, attention, 0.5)), 3)
		if r.Verdict != verdict.Improvement || math.Abs(r.Step.Before-2.005) > 0.01 || math.Abs(r.Step.After-1.555) > 0.01 ||
			r.Rows[0].Key != attention || math.Abs(r.Rows[0].Before-0.9) > 1e-6 {
			t.Errorf("%d steps: %s %+v", n, r.Sentence, r.Rows[0])
		}
	}
	// Of one that is not ahead its own times count: what a faster kernel brings does not show.
	r := Compare(traced(t, 3, true, 1000, model), traced(t, 3, true, 1000, with(model, attention, 0.5)), 3)
	if r.Verdict != verdict.Neutral || r.Step.Before != 5 || !strings.Contains(r.Sentence, "devices work 1.550 ms instead of 2.000 ms does "+
		"not show in it") {
		t.Errorf("%s", r.Sentence)
	}
}

func TestWorkWithoutStepsIsComparedFromFirstToLast(t *testing.T) {
	before := traced(t, 1, false, 20, model)
	r := Compare(before, traced(t, 1, false, 20, with(model, attention, 0.5)), 3)
	if r.Verdict != verdict.Improvement || r.Rows[0].Key != attention || r.DeviceWork == nil || math.Abs(r.DeviceWork.Before-2) > 1e-6 {
		t.Errorf("%s %+v", r.Sentence, r.Rows[0])
	}
	if r := Compare(before, before, 3); r.Verdict != verdict.Neutral {
		t.Errorf("%s", r.Sentence)
	}
}

// Rows of a device alone, as an export of its kernels has them.
func TestWorkOfNoOperatorIsNamedByItsKernel(t *testing.T) {
	alone := func(us float64) *Side {
		var rows []map[string]any
		for i, took := range []float64{us, 500} {
			rows = append(rows, map[string]any{"ph": "X", "cat": "kernel", "name": []string{"gemm", "relu"}[i], "pid": 0, "tid": 7,
				"ts": 1000 + 5000*i, "dur": took, "args": map[string]any{"device": 0, "stream": 7}})
		}
		rows[1]["ts"] = 1000 + us + 10
		return sideOfFile(t, map[string]any{"traceEvents": rows})
	}
	r := Compare(alone(1000), alone(2000), 3)
	if r.Verdict != verdict.Regression || r.Rows[0].Key != "gemm" || !strings.Contains(r.Sentence, "most of it in kernel gemm (+1.000 ms)") {
		t.Errorf("%s %+v", r.Sentence, r.Rows)
	}
}

// A kernel that is written in Python: its launch stands in functions of the operator.
func TestWorkIsOfTheOperatorAroundItsFunctions(t *testing.T) {
	rows := []map[string]any{{"ph": "X", "cat": "cpu_op", "name": "FlashAttnFunc", "pid": 7, "tid": 7, "ts": 100, "dur": 100}}
	for i := range 5 {
		rows = append(rows, map[string]any{"ph": "X", "cat": "python_function", "name": fmt.Sprintf("triton.py(%d): run", i), "pid": 7, "tid": 7,
			"ts": 110 + i, "dur": 80 - 2*i})
	}
	rows = append(rows, map[string]any{"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernel", "pid": 7, "tid": 7, "ts": 130, "dur": 5,
		"args": map[string]any{"correlation": 9}},
		map[string]any{"ph": "X", "cat": "kernel", "name": "_fwd_kernel", "pid": 0, "tid": 7, "ts": 150, "dur": 500,
			"args": map[string]any{"correlation": 9, "device": 0, "stream": 7}})
	side := sideOfFile(t, map[string]any{"traceEvents": rows})
	if got := side.PerStep[Key{"operator", "FlashAttnFunc"}]; math.Abs(got-0.5) > 1e-9 {
		t.Errorf("%g ms of %v", got, side.PerStep)
	}
}

func TestDevicesOfTwoMakersMeetInOperatorsAndClasses(t *testing.T) {
	r := Compare(traced(t, 1, true, 20, model), traced(t, 1, true, 20, onAMD), 3)
	if r.Verdict != verdict.Regression || r.Rows[0].Key != attention || math.Abs(r.Rows[0].After-1.7) > 1e-6 {
		t.Errorf("%s %+v", r.Sentence, r.Rows[0])
	}
	classes := map[string]Row{}
	for _, row := range r.Rows {
		if row.Kind == "class" {
			classes[row.Key] = row
		}
	}
	for class, want := range map[string][2]float64{"convolution": {0.4, 0.5}, "matrix product": {0.6, 0.52}, "attention": {0.9, 1.7},
		"normalization": {0.1, 0.13}} {
		if row := classes[class]; math.Abs(row.Before-want[0]) > 1e-6 || math.Abs(row.After-want[1]) > 1e-6 {
			t.Errorf("%s: %+v", class, row)
		}
	}
}

// The given trace of a host that takes its time, and one of a device that does: all of its
// work twenty times longer.
func TestARealStepWithAFasterKernel(t *testing.T) {
	slower := func(factor func(name string) float64) *Side {
		document := given(t)
		end := 0.0
		for _, e := range document["traceEvents"].([]any) {
			row := e.(map[string]any)
			if category := row["cat"]; category != "kernel" && category != "gpu_memcpy" || row["ph"] != "X" {
				continue
			}
			row["dur"] = row["dur"].(float64) * factor(row["name"].(string))
			row["ts"] = math.Max(row["ts"].(float64), end)
			end = row["ts"].(float64) + row["dur"].(float64) + 1
		}
		return sideOfFile(t, document)
	}
	twenty := func(string) float64 { return 20 }
	before := slower(twenty)
	flash := func(name string) float64 {
		if strings.Contains(name, "flash") {
			return 10
		}
		return 20
	}
	if r := Compare(before, slower(flash), 3); r.Verdict != verdict.Improvement || r.Rows[0].Key != attention ||
		math.Abs(r.Rows[0].After/r.Rows[0].Before-0.5) > 1e-3 {
		t.Errorf("%s %+v", r.Sentence, r.Rows[0])
	}
	if r := Compare(before, slower(func(string) float64 { return 20.2 }), 3); r.Verdict != verdict.Neutral &&
		r.Verdict != verdict.Inconclusive {
		t.Errorf("%s", r.Sentence)
	}
	own := sideOfFile(t, given(t))
	if r := Compare(own, own, 3); r.Verdict != verdict.Neutral || math.Abs(r.Step.Before-4.426114) > 1e-6 {
		t.Errorf("%s", r.Sentence)
	}
}

func given(t *testing.T) (document map[string]any) {
	t.Helper()
	f, err := os.Open(foreign(t, "kineto/gaunernst_bert-small-uncased__1016001.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&document); err != nil {
		t.Fatal(err)
	}
	return document
}

// foreign is data that is not part of the repository.
func foreign(t *testing.T, name string) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	path := filepath.Join(filepath.Dir(here), "../../../../shared/data", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not here: nothing foreign to compare", name)
	}
	return path
}
