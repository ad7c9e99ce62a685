// Package rules are the rules of findings. Each rule is a file: it accuses spans or waits of
// the steps, and changes the times of a step as if they were mended.
package rules

import "github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"

// All are the rules. To add one, write a file with a Rule, its thresholds and its function, a
// test beside it, and a line here: help, thresholds and documentation follow.
var All = []evidence.Rule{
	Allocation,
	Backward,
	Blocked,
	CollectiveOutlier,
	RankImbalance,
	FirstStep,
	Recompilation,
	Contention,
	SmallCopies,
	Fetched,
	Fusion,
	GIL,
	HostBound,
	Hotspot,
	Layout,
	Loader,
	Throttling,
}
