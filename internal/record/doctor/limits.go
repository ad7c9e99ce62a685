package doctor

import (
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/record/mapfill"
	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/tracer"
)

// limitChecks say what a recording keeps at the most, and of each that runs now how much
// of that, and of the kernel's tables, it uses.
func limitChecks() []check {
	var limits []string
	for _, l := range tracer.Limits {
		limits = append(limits, fmt.Sprintf("%s %s", l.Name, amount.Count(uint64(l.Default))))
	}
	checks := []check{{"limits", stateOK, strings.Join(limits, ", ") + "; --limit changes one, docs/limits.md has all"}}
	for _, pid := range mapfill.Recordings() {
		tables, err := mapfill.Of(pid)
		if err != nil {
			continue // it ended
		}
		limits, err := mapfill.Limits(pid)
		if err != nil {
			continue
		}
		checks = append(checks, fillCheck(pid, append(limits, tables...)))
	}
	return checks
}

// nearlyFull is from where on a table or a limit is worth a word, in percent.
const nearlyFull = 90

func fillCheck(pid int, fills []mapfill.Fill) check {
	c := check{fmt.Sprintf("recording %d", pid), stateOK, ""}
	var used []string
	for _, t := range fills {
		used = append(used, fmt.Sprintf("%s %s of %s", t.Name, amount.Count(uint64(t.Used)), amount.Count(uint64(t.Most))))
		if t.Used*100 >= t.Most*nearlyFull {
			c.State = stateDegraded
		}
	}
	c.Why = strings.Join(used, ", ")
	return c
}
