package timeline

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/exchange/importer"
)

// events is a step on two streams of a device, with every kind of wait that torch.profiler
// tells of: a stream for an event, the host for an event, for a stream and for all.
const events = `{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}], "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1}, "traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 10, "ts": 0, "dur": 400, "args": {}},
{"ph": "X", "cat": "cpu_op", "name": "aten::conv2d", "pid": 1, "tid": 10, "ts": 5, "dur": 40, "args": {"External id": 1}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 10, "ts": 10, "dur": 10, "args": {"correlation": 1}},
{"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 16, "dur": 80, "args": {"correlation": 1, "stream": 7, "device": 0}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaEventRecord", "pid": 1, "tid": 10, "ts": 46, "dur": 2, "args": {"correlation": 2}},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 10, "ts": 50, "dur": 20, "args": {"External id": 2}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 10, "ts": 54, "dur": 8, "args": {"correlation": 3}},
{"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 98, "dur": 20, "args": {"correlation": 3, "stream": 7, "device": 0}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamWaitEvent", "pid": 1, "tid": 10, "ts": 72, "dur": 2, "args": {"correlation": 4}},
{"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 20, "ts": 73, "dur": 1, "args": {"correlation": 4, "stream": 20, "device": 0, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 2}},
{"ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 1, "tid": 10, "ts": 76, "dur": 14, "args": {"External id": 3}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 10, "ts": 78, "dur": 6, "args": {"correlation": 5}},
{"ph": "X", "cat": "kernel", "name": "c", "pid": 0, "tid": 20, "ts": 98, "dur": 70, "args": {"correlation": 5, "stream": 20, "device": 0}},
{"ph": "X", "cat": "cpu_op", "name": "aten::copy_", "pid": 1, "tid": 10, "ts": 95, "dur": 15, "args": {"External id": 4}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 1, "tid": 10, "ts": 98, "dur": 8, "args": {"correlation": 6}},
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pinned)", "pid": 0, "tid": 20, "ts": 170, "dur": 10, "args": {"correlation": 6, "stream": 20, "device": 0}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaEventRecord", "pid": 1, "tid": 10, "ts": 111, "dur": 1, "args": {"correlation": 7}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaEventSynchronize", "pid": 1, "tid": 10, "ts": 113, "dur": 70, "args": {"correlation": 8}},
{"ph": "X", "cat": "cuda_sync", "name": "Event Sync", "pid": 0, "tid": -1, "ts": 114, "dur": 68, "args": {"correlation": 8, "stream": -1, "device": 0, "wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": 7}},
{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 10, "ts": 190, "dur": 30, "args": {"External id": 5}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 10, "ts": 195, "dur": 10, "args": {"correlation": 9}},
{"ph": "X", "cat": "kernel", "name": "d", "pid": 0, "tid": 7, "ts": 206, "dur": 30, "args": {"correlation": 9, "stream": 7, "device": 0}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 1, "tid": 10, "ts": 222, "dur": 18, "args": {"correlation": 10}},
{"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 7, "ts": 223, "dur": 15, "args": {"correlation": 10, "stream": 7, "device": 0}},
{"ph": "X", "cat": "cpu_op", "name": "aten::sub", "pid": 1, "tid": 10, "ts": 250, "dur": 30, "args": {"External id": 6}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 10, "ts": 255, "dur": 10, "args": {"correlation": 11}},
{"ph": "X", "cat": "kernel", "name": "e", "pid": 0, "tid": 20, "ts": 268, "dur": 120, "args": {"correlation": 11, "stream": 20, "device": 0}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 1, "tid": 10, "ts": 282, "dur": 110, "args": {"correlation": 12}},
{"ph": "X", "cat": "cuda_sync", "name": "Context Sync", "pid": 0, "tid": -1, "ts": 283, "dur": 107, "args": {"correlation": 12, "stream": -1, "device": 0}}
]}`

// TestThePathThroughWaitsIsHTAs: HTA 0.6.1 says of the trace, in µs: cpu_bound 15,
// gpu_compute_bound 310 (with the copy's 10), gpu_kernel_kernel_overhead 2,
// gpu_kernel_launch_overhead 30. Another 2 are the wait of stream 20 for stream 7.
func TestThePathThroughWaitsIsHTAs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "t.json")
	if err := os.WriteFile(file, []byte(events), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := importer.Import(context.Background(), []string{file}, filepath.Join(dir, "d"), importer.Options{}); err != nil {
		t.Fatal(err)
	}
	db := open(t, filepath.Join(dir, "d"))
	thread, step, err := Choose(find(t, db), -1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Path(t.Context(), db, thread, step)
	if err != nil {
		t.Fatal(err)
	}
	b := p.BoundBy
	for name, c := range map[string][2]float64{
		"in calls": {b.InCalls, 15}, "compute and copies": {b.Compute + b.Copies, 310}, "kernel after kernel": {b.KernelKernel, 2},
		"launches":         {b.KernelLaunch, 30},
		"waits of streams": {b.StreamWait, 2}, "the path": {p.PathMS, 400}, "all parts": {b.CPU + b.Compute + b.Copies + b.Communication +
			b.KernelKernel + b.StreamWait + b.KernelLaunch, 400},
	} {
		if math.Abs(1000*c[0]-c[1]) > 1e-9 {
			t.Errorf("%s: %g µs, want %g", name, 1000*c[0], c[1])
		}
	}
	var names []string
	for _, s := range p.Segments {
		if s.Where == "device" {
			names = append(names, s.Name[:1])
		}
	}
	if got := strings.Join(names, " "); got != "a c M d e" {
		t.Errorf("the path goes through %s: b has no part in it", got)
	}
}
