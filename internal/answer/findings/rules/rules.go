// Package rules is what findings asks of a recording. Each rule is a file: it accuses spans
// or waits of the steps, and says what would be different if they were mended.
package rules

import "github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"

// All in the order of their files' names.
var All = []evidence.Rule{
	allocation, backward, blocked, collectiveOutlier, rankImbalance, firstStep, recompilation, contention, smallCopies, fetched, fusion, gil,
	hostBound, hotspot, layout, loader, throttling,
}
