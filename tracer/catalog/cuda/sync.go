package cuda

import (
	"slices"

	. "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

var syncGroup = Group{
	Name:   "cuda-sync",
	Anchor: true,
	Help:   "CUDA driver: waits, events, and what they tell of the device's time",
	Tier:   Anchor,
	With:   []string{"cuda-code"},
	Functions: slices.Concat(
		cuda("cuStreamSynchronize", "sync", "|_ptsz", Changes(WaitsStream, Reg(FieldStream, 0), Delay())),
		cuda("cuEventSynchronize", "sync", "", Changes(WaitsEvent, Reg(FieldEvent, 0), Delay())),
		cuda("cuCtxSynchronize", "sync", "", Changes(WaitsContext, Delay())),
		cuda("cuCtxSynchronize", "sync", "_v2", Changes(WaitsContext, Reg(FieldContext, 0), Delay()), Since("13.0")),
		cuda("cuStreamQuery", "event", "|_ptsz", Changes(QueriesStream, Reg(FieldStream, 0))),
		cuda("cuEventQuery", "event", "", Changes(QueriesEvent, Reg(FieldEvent, 0))),
		cuda("cuEventCreate", "event", "", Captures(Out(FieldEvent, 0))),
		cuda("cuEventDestroy", "event", "|_v2", Changes(DestroysEvent, Reg(FieldEvent, 0))),
		cuda("cuEventRecord", "event", "|_ptsz", Changes(RecordsEvent, Reg(FieldEvent, 0), Reg(FieldStream, 1))),
		cuda("cuEventRecordWithFlags", "event", "|_ptsz", Changes(RecordsEvent, Reg(FieldEvent, 0), Reg(FieldStream, 1), Reg32(FieldFlags, 2))),
		// cuEventElapsedTime(float *milliseconds, start, end)
		cuda("cuEventElapsedTime", "event", "", elapsed),
		cuda("cuEventElapsedTime", "event", "_v2", elapsed, Since("12.8")),
		cuda("cuStreamWaitEvent", "event", "|_ptsz", Changes(StreamWaits, Reg(FieldStream, 0), Reg(FieldEvent, 1), Reg32(FieldFlags, 2))),
	),
}

func elapsed(f *Function) {
	f.Effect = TellsElapsed
	f.Values = []Value{Out32(FieldElapsed, 0), Reg(FieldStartEvent, 1), Reg(FieldEvent, 2)}
}
