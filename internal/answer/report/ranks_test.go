package report

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// amdRank makes up a trace as torch.profiler writes it on ROCm, and says by looking
// at every nanosecond what its device did.
func amdRank(r *rand.Rand, rank int, base int64) (trace string, want Device) {
	const window = 200_000 // ns
	var computes, communicates, copies [window + 1]bool
	first, last := window, 0
	var events []string
	kinds := []struct {
		cat, name, call string
		of              *[window + 1]bool
	}{
		{"kernel", "Cijk_Ailk_Bljk_BBS_BH_MT128x128x16_SE_K1", "hipExtModuleLaunchKernel", &computes},
		{"kernel", "void at::native::vectorized_elementwise_kernel<4>(int)", "hipLaunchKernel", &computes},
		{"kernel", "ncclDevKernel_Generic(ncclDevComm*)", "hipExtLaunchKernel", &communicates},
		{"kernel", "void rcclGenericKernel<1, false>(ncclDevKernelArgs)", "hipExtLaunchKernel", &communicates},
		{"kernel", "void vllm::cross_device_reduce_2stage<__half, 8>()", "hipLaunchKernel", &communicates},
		{"gpu_memcpy", "Memcpy HtoD (Host -> Device)", "hipMemcpyAsync", &copies},
		{"kernel", "__amd_rocclr_copyBuffer.kd", "hipMemcpyWithStream", &copies},
		{"kernel", "MEMORY_COPY_DEVICE_TO_HOST", "hipMemcpyAsync", &copies},
		{"gpu_memset", "Memset (Device)", "hipMemsetAsync", &computes},
		{"kernel", "__amd_rocclr_fillBufferAligned.kd", "hipMemsetAsync", &computes},
	}
	us := func(ns int) string { return fmt.Sprintf("%d.%03d", 1_000_000+ns/1000, ns%1000) }
	for i := range 60 {
		k := kinds[r.IntN(len(kinds))]
		at, took := 2000+r.IntN(window-12_000), 1+r.IntN(9000)
		first, last = min(first, at), max(last, at+took)
		for t := at; t < at+took; t++ {
			k.of[t] = true
		}
		args := fmt.Sprintf(`"External id": %d, "device": %d, "stream": %d, "correlation": %d`, i+1, rank, i%3, 1000+i)
		events = append(events,
			fmt.Sprintf(`{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 50, "tid": 51, "ts": %s, "dur": 0.9, "args": {"External id": %d}}`,
				us(i*20), i+1),
			fmt.Sprintf(`{"ph": "X", "cat": "cuda_runtime", "name": %q, "pid": 50, "tid": 51, "ts": %s, "dur": 0.010, "args": {"correlation": %d, "External id": %d}}`, k.call, us(i*20+1), 1000+i, i+1),
			fmt.Sprintf(`{"ph": "X", "cat": %q, "name": %q, "pid": %d, "tid": %d, "ts": %s, "dur": %d.%03d, "args": {%s}}`, k.cat, k.name, rank, i%3,
				us(at), took/1000, took%1000, args))
	}
	r.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for t := first; t < last; t++ {
		switch {
		case computes[t]:
			want.ComputationMS++
		case communicates[t]:
			want.ExposedCommunicationMS++
		case copies[t]:
			want.ExposedMemcpyMS++
		default:
			want.IdleMS++
		}
	}
	want.TotalMS = float64(last - first)
	return fmt.Sprintf(`{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X"}],
		"distributedInfo": {"backend": "nccl", "rank": "%d", "world_size": 2, "pg_count": 1, "pg_config": [{"pg_name": "0", "ranks": [0, 1]}]},
		"traceEvents": [%s], "baseTimeNanoseconds": %d}`, rank, strings.Join(events, ",\n"), base), want
}

func TestDeviceTimesOfATraceOfROCmAreThoseOfEveryNanosecond(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 7))
		dir := t.TempDir()
		var files []string
		var want Device
		for rank := range 2 {
			text, one := amdRank(r, rank, 1_700_000_000_000_000_000)
			path := filepath.Join(dir, fmt.Sprintf("trace_%d.json", rank))
			content := []byte(text)
			if rank == 1 {
				var z bytes.Buffer
				w := gzip.NewWriter(&z)
				w.Write(content)
				w.Close()
				path, content = path+".gz", z.Bytes()
			}
			if err := os.WriteFile(path, content, 0o644); err != nil {
				t.Fatal(err)
			}
			files = append(files, path)
			want.TotalMS += one.TotalMS / 2e6
			want.ComputationMS += one.ComputationMS / 2e6
			want.ExposedCommunicationMS += one.ExposedCommunicationMS / 2e6
			want.ExposedMemcpyMS += one.ExposedMemcpyMS / 2e6
			want.IdleMS += one.IdleMS / 2e6
		}
		rep := built(t, imported(t, files...))
		got := rep.Device
		if got == nil || got.Count != 2 || rep.Rows.LeftOut != 0 {
			t.Fatalf("seed %d: %+v, %s", seed, got, rep.Rows.Sentence)
		}
		for name, v := range map[string][2]float64{
			"total": {got.TotalMS, want.TotalMS}, "computation": {got.ComputationMS, want.ComputationMS},
			"communication": {got.ExposedCommunicationMS, want.ExposedCommunicationMS}, "memcpy": {got.ExposedMemcpyMS, want.ExposedMemcpyMS},
			"idle": {got.IdleMS, want.IdleMS},
		} {
			if math.Abs(v[0]-v[1]) > 1e-6 {
				t.Errorf("seed %d: %s %v ms, want %v", seed, name, v[0], v[1])
			}
		}
		if rep.Job[0].Rank == nil || rep.Job[1].Rank == nil || *rep.Job[0].Rank+*rep.Job[1].Rank != 1 || *rep.Job[0].WorldSize != 2 {
			t.Errorf("ranks %+v", rep.Job)
		}
		for _, o := range rep.Operators {
			if o.Name == "aten::mm" && (o.DeviceMS == nil || o.Calls != 120) {
				t.Errorf("%+v", o)
			}
		}
	}
}
