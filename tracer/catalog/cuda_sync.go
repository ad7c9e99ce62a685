package catalog

var cudaSyncGroup = Group{
	Name: "cuda-sync",
	Help: "CUDA driver: waits, events, and what they tell of the device's time",
	Tier: Anchor,
	With: []string{"cuda-code"},
	Functions: concat(
		cuda("cuStreamSynchronize", "sync", "|_ptsz", effect(WaitsStream, Reg(FieldStream, 0))),
		cuda("cuEventSynchronize", "sync", "", effect(WaitsEvent, Reg(FieldEvent, 0))),
		cuda("cuCtxSynchronize", "sync", "", effect(WaitsContext)),
		cuda("cuCtxSynchronize", "sync", "_v2", effect(WaitsContext, Reg(FieldContext, 0)), since("13.0")),
		cuda("cuStreamQuery", "event", "|_ptsz", effect(QueriesStream, Reg(FieldStream, 0))),
		cuda("cuEventQuery", "event", "", effect(QueriesEvent, Reg(FieldEvent, 0))),
		cuda("cuEventCreate", "event", "", values(Out(FieldEvent, 0))),
		cuda("cuEventDestroy", "event", "|_v2", effect(DestroysEvent, Reg(FieldEvent, 0))),
		cuda("cuEventRecord", "event", "|_ptsz", effect(RecordsEvent, Reg(FieldEvent, 0), Reg(FieldStream, 1))),
		cuda("cuEventRecordWithFlags", "event", "|_ptsz", effect(RecordsEvent, Reg(FieldEvent, 0), Reg(FieldStream, 1), Reg32(FieldFlags, 2))),
		// cuEventElapsedTime(float *milliseconds, start, end)
		cuda("cuEventElapsedTime", "event", "", cudaElapsed),
		cuda("cuEventElapsedTime", "event", "_v2", cudaElapsed, since("12.8")),
		cuda("cuStreamWaitEvent", "event", "|_ptsz", effect(StreamWaits, Reg(FieldStream, 0), Reg(FieldEvent, 1), Reg32(FieldFlags, 2))),
	),
}

func cudaElapsed(f *Function) {
	f.Effect = TellsElapsed
	f.Values = []Value{Out32(FieldElapsed, 0), Reg(FieldStartEvent, 1), Reg(FieldEvent, 2)}
}
