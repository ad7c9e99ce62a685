package report

import (
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// TestFrameworksWithoutOperatorsAreNamed instead of advice to record again, except beside PyTorch, whose operators are
// recorded.
func TestFrameworksWithoutOperatorsAreNamed(t *testing.T) {
	const packages = "/venv/lib/python3.11/site-packages/"
	for _, c := range []struct {
		libraries []string
		want      string
	}{
		{[]string{"lightgbm/lib/lib_lightgbm.so"}, "none of LightGBM are recorded at any level"},
		{[]string{"jaxlib/libjax_common.so", "onnxruntime/capi/onnxruntime_pybind11_state.so"}, "none of JAX on a CPU, ONNX Runtime are"},
		{[]string{"lightgbm/lib/lib_lightgbm.so", "torch/lib/libtorch_cpu.so"}, "record at --level window"},
		{[]string{"numpy/_core/_multiarray_umath.so"}, "record at --level window"},
	} {
		db := made(t, func(d *output.Dataset) error {
			b := &event.Batch{Samples: []event.Sample{{TSNS: 1e15, PID: 7, TID: 7, State: event.OnCPU, WeightNS: 5e6}}}
			for _, l := range c.libraries {
				b.Libraries = append(b.Libraries, event.Library{PID: 7, Path: packages + l})
			}
			return d.Write(b)
		})
		if untold := strings.Join(built(t, db).Untold, "\n"); !strings.Contains(untold, c.want) {
			t.Errorf("%v: %q lacks %q", c.libraries, untold, c.want)
		}
	}
}
