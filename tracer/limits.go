package tracer

// What a recording keeps at the most, in one place. A table that is full, or a
// process that has used up its share of one, costs rows or names, never the
// recording: each has a reason in the warning table (docs/limits.md). Those of
// the kernel's tables are in bpf/maps.h and bpf/lives.h; a test compares them.
const (
	// MaxProcesses are traced at once.
	MaxProcesses = 4096
	// maxTracedFiles bounds the files with probes, or that could have had some: each
	// takes a descriptor and a mapping. A job of eight processes with all runtimes
	// has a dozen, for they share them.
	maxTracedFiles = 1024
	// MaxThreads have calls at once, MaxWaitingThreads are off the CPU at once.
	MaxThreads        = 16384
	MaxWaitingThreads = 16384
	// MaxThreadsOfProcess and MaxWaitsOfProcess are one process's share of those.
	MaxThreadsOfProcess = 4096
	MaxWaitsOfProcess   = 4096
	// maxClasses are the vtables of one process whose names are kept.
	maxClasses = 1 << 14
	// MaxOpenScopes are open at once, MaxScopesOfProcess those of one process.
	MaxOpenScopes      = 4096
	MaxScopesOfProcess = 1024
)
