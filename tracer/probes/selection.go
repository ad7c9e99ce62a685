package probes

import (
	"fmt"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/features"
)

// What a budget leaves out on kernels before 6.6. Each probe is a perf event there, and
// the kernel takes tens of milliseconds over each one that comes out, in which the job
// goes on paying for those that wait: the probes of a slice took 12 to 23 s. So nothing
// is in slices there. What would be is recorded whole, without a budget, or not at all:
// but launches, some hundreds to thousands a step, are in as long as the budget has room
// (budget/whole.go).

// Selection are the groups of a recording.
type Selection struct {
	Groups  []spec.Group
	leftOut []string // the names of those that this kernel cannot have in slices
}

// SlicesHere reports whether probes can be in for some of the time.
func SlicesHere(can *features.Set) bool { return can.UprobeMulti }

// Select leaves out of the groups what the budget would have in slices, where
// the kernel is too slow for that.
func Select(groups []spec.Group, budget float64, can *features.Set) Selection {
	if budget <= 0 || SlicesHere(can) {
		return Selection{Groups: groups}
	}
	var s Selection
	for _, g := range groups {
		if g.Launches {
			g.Tier = spec.Anchor // until they turn out to be too expensive
		}
		if g.Tier == spec.Detail {
			s.leftOut = append(s.leftOut, g.Name)
		} else {
			s.Groups = append(s.Groups, g)
		}
	}
	return s
}

// LeftOut is one sentence on what was left out, and what to do; empty if nothing was.
func (s Selection) LeftOut() string {
	if len(s.leftOut) == 0 {
		return ""
	}
	return fmt.Sprintf("without uprobe.multi (Linux 6.6) probes come out one by one, too slowly for slices: "+
		"within a budget no call of %s is recorded, and launches are while there is room for all of them; "+
		"--budget off records every call, a newer kernel records slices",
		strings.Join(s.leftOut, ", "))
}

// Warn puts that into the dataset.
func (s Selection) Warn(warn func(event.Warning)) {
	if said := s.LeftOut(); said != "" {
		warn(event.Warning{TSNS: time.Now().UnixNano(), Kind: "slice", Source: "uprobe_multi", Count: int64(len(s.leftOut)), Detail: said})
	}
}
