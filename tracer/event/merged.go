package event

// MergedTrace is a trace of another profiler that was merged into a recording: its rows of devices are rows of the
// recording, its rows of the host were compared with those of the recording.
type MergedTrace struct {
	StartNS, EndNS int64 // from the first call of the host in the trace to the end of the last, by the recording's clock
	PID            int32
	Source         string // who wrote it: torch.profiler, nsys
	// Method says how it came: MergedOnDemand, MergedFile or MergedCUPTI.
	Method string
	// Calls are operators, scopes and backward nodes in the trace, or where it has none in common with the recording calls of
	// the runtime; Matched how many of them are calls of the recording,
	// the others why the rest is not.
	Calls, Matched, OtherThread, OtherName, OutsideSlices, Unmatched int64
	// RecordedOnly are calls of the recording in that time whose name is in the trace and which are not.
	RecordedOnly int64
	// How much later the trace has the same calls than the recording: the median, and between which two values nine
	// tenths are. Nil where no call is in both.
	OffsetNS, OffsetLoNS, OffsetHiNS *int64
	// LongerNS is the median of how much longer the same calls are in the recording.
	LongerNS *int64
	// Rows of devices, and how many of them have a launch that was recorded.
	DeviceRows, Launched int64
	// BoundsChecked are recorded launches with bounds of their device time whose device rows are in the trace, BoundsHeld
	// those whose rows took a time within their bounds.
	BoundsChecked, BoundsHeld int64
}

// Values of MergedTrace.Method.
const (
	MergedOnDemand = "profiler" // the job's own profiler wrote the trace on demand
	MergedFile     = "file"     // its user had one
	MergedCUPTI    = "cupti"    // a library in the job handed over what CUPTI recorded
)
