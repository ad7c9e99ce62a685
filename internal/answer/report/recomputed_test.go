package report

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// trainingTrace is a torch.profiler trace of a step: a linear layer's forward pass, and its
// backward pass, in which the events of again stand where a checkpoint computes.
func trainingTrace(t *testing.T, node string, again ...map[string]any) *Report {
	t.Helper()
	shapes := map[string]any{"Input Dims": []any{[]int{64}, []int{32, 128}, []int{128, 64}}, "Input type": []string{"float", "float", "float"}}
	event := func(category, name string, tid, from, lasts int, arguments map[string]any) map[string]any {
		return map[string]any{"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": from, "dur": lasts, "args": arguments}
	}
	events := []map[string]any{
		event("cpu_op", "aten::addmm", 1, 1000, 100, shapes),
		event("cpu_op", "autograd::engine::evaluate_function: "+node, 2, 2000, 900, nil),
		event("cpu_op", node, 2, 2010, 880, nil),
		event("cpu_op", "aten::mm", 2, 2700, 100, map[string]any{"Input Dims": []any{[]int{128, 32}, []int{32, 64}},
			"Input type": []string{"float", "float"}}),
		event("cuda_runtime", "cudaLaunchKernel", 1, 1050, 10, map[string]any{"correlation": 7}),
		event("kernel", "gemm", 7, 1100, 900, map[string]any{"correlation": 7, "stream": 7, "device": 0}),
	}
	for _, e := range again {
		if e["name"] == "aten::addmm" {
			e["args"] = shapes
		}
		events = append(events, event(e["cat"].(string), e["name"].(string), 2, e["ts"].(int), e["dur"].(int), map[string]any{}))
		if e["args"] != nil {
			events[len(events)-1]["args"] = e["args"]
		}
	}
	content, err := json.Marshal(map[string]any{"deviceProperties": []any{map[string]any{"id": 0, "name": "NVIDIA H100 80GB HBM3"}},
		"traceEvents": events})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "trace.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return built(t, imported(t, path))
}

const (
	forwardFLOPs  = 2*32*128*64 + 32*64 // addmm with its bias
	backwardFLOPs = 2 * 128 * 32 * 64
)

// TestWhatCheckpointsComputeAgainIsTheHardwaresAndNotTheModels, whichever way they do it.
func TestWhatCheckpointsComputeAgainIsTheHardwaresAndNotTheModels(t *testing.T) {
	call := func(category, name string, from, lasts int) map[string]any {
		return map[string]any{"cat": category, "name": name, "ts": from, "dur": lasts}
	}
	for name, c := range map[string]struct {
		node  string
		again []map[string]any
		want  float64
	}{
		"nothing": {"AddmmBackward0", nil, 0},
		"a node's own": {"CheckpointFunctionBackward", []map[string]any{call("cpu_op", "aten::addmm", 2100, 100)},
			forwardFLOPs + backwardFLOPs},
		"a pass inside": {"CheckpointFunctionBackward", []map[string]any{call("cpu_op", "aten::addmm", 2100, 100),
			call("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 2650, 200)}, forwardFLOPs},
		"by a hook": {"AddmmBackward0", []map[string]any{call("cpu_op", "aten::linear", 2090, 120), call("cpu_op", "aten::addmm", 2100,
			100)}, forwardFLOPs},
		"by its frames": {"MulBackward1", []map[string]any{call("python_function", "torch/utils/checkpoint.py(1351): unpack_hook", 2080, 200),
			call("cpu_op", "mine::block", 2090, 120), call("cpu_op", "aten::addmm", 2100, 100)}, forwardFLOPs},
		"differentiated": {"ConvolutionBackwardBackward0", []map[string]any{call("cpu_op", "aten::addmm", 2100, 100)}, 0},
		"a user's own":   {"MineBackward", []map[string]any{call("cpu_op", "aten::addmm", 2100, 100)}, 0},
	} {
		b := trainingTrace(t, c.node, c.again...).Bound
		if b == nil {
			t.Errorf("%s: no bound", name)
			continue
		}
		if b.Recomputed != c.want {
			t.Errorf("%s: %v FLOPs were computed again, want %v (of %v)", name, b.Recomputed, c.want, b.FLOPs)
		}
		if model := b.HFU * (1 - b.Recomputed/b.FLOPs); b.HFU <= 0 || math.Abs(b.MFU-model) > 1e-9*b.HFU {
			t.Errorf("%s: MFU %v, HFU %v", name, b.MFU, b.HFU)
		}
	}
}
