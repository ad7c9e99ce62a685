package tracer

// What a recording keeps at the most, in one place. A table that is full, or a
// process that has used up its share of one, costs rows or names, never the
// recording: each has a reason in the warning table (docs/limits.md). Those of
// the kernel's tables are in bpf/maps.h and bpf/lives.h; a test compares them.
const (
	// MaxProcesses are traced at once.
	MaxProcesses = 4096
	// MaxThreads have calls at once, MaxWaitingThreads are off the CPU at once.
	MaxThreads        = 16384
	MaxWaitingThreads = 16384
	// MaxThreadsOfProcess and MaxWaitsOfProcess are one process's share of those.
	MaxThreadsOfProcess = 4096
	MaxWaitsOfProcess   = 4096
	// MaxLinkerHooks are on the dynamic linkers of children at once: the kernel looks
	// at each of them, and at each process that maps the file, whenever one comes or
	// goes. What the others load is found when their maps are read, within 2 s.
	MaxLinkerHooks = 64
	// maxNames are the names that calls were given at run time, kept so that their
	// spans share them: those that came last.
	maxNames = 1 << 16
	// maxSummaryNames have a line of their own in the sums of the summary.
	maxSummaryNames = 1 << 14
	// maxLiveAllocations are followed in one process.
	maxLiveAllocations = 1 << 20
	// maxWaitingPlugins of one process are waited for: each has a descriptor and a hook.
	maxWaitingPlugins = 16
	// maxForwards are the operators of one process whose backward nodes are waited for.
	maxForwards = 1 << 20
	// maxClasses are the vtables of one process whose names are kept.
	maxClasses = 1 << 14
	// MaxOpenScopes are open at once, MaxScopesOfProcess those of one process.
	MaxOpenScopes      = 4096
	MaxScopesOfProcess = 1024
)
