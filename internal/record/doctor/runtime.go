package doctor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/counter"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
)

// countersOf names the counter source that goes with a runtime's devices.
var countersOf = map[string]string{"cuda": "nvidia", "hip": "amd", "neuron": "neuron"}

// runtimeChecks say, for each accelerator runtime that a process has, what of it
// would be missing from a recording.
func runtimeChecks(plans []*plan.Plan, sources []counter.Availability) []check {
	var checks []check
	for _, plan := range plans {
		for _, runtime := range runtimesOf(plan) {
			if k, ok := runtimeCheck(plan, runtime, sources); ok {
				checks = append(checks, k)
			}
		}
	}
	return checks
}

// runtimesOf are the runtimes whose functions a library has.
func runtimesOf(plan *plan.Plan) (runtimes []string) {
	for i := range plan.Probes {
		if r := plan.Probes[i].Function.Runtime; r != "" && !slices.Contains(runtimes, r) {
			runtimes = append(runtimes, r)
		}
	}
	return runtimes
}

// runtimeCheck is about one runtime, if the catalog has its functions by name.
func runtimeCheck(plan *plan.Plan, runtime string, sources []counter.Availability) (k check, ok bool) {
	base := filepath.Base(plan.Path)
	k = check{"runtime: " + runtime, stateOK, ""}
	var why []string
	absent, refused, all := missingFrom(plan, runtime)
	why = append(why, fmt.Sprintf("%s has %d of the %d functions that the catalog knows", base, all-len(absent), all))
	if len(absent) > 0 {
		why = append(why, "not in this version: "+someOf(absent))
	}
	if len(refused) > 0 {
		k.State = stateDegraded
		why = append(why, "cannot be probed: "+someOf(refused))
	}
	for _, s := range sources {
		if s.Source == countersOf[runtime] && s.Err != nil {
			k.State = stateDegraded
			why = append(why, fmt.Sprintf("no counters of its devices: %v", s.Err))
		}
	}
	k.Why = strings.Join(why, "; ")
	return k, all > 0
}

// missingFrom lists the functions of a runtime that a library lacks, and those
// that it has and that have no place for a probe.
func missingFrom(plan *plan.Plan, runtime string) (absent, refused []string, all int) {
	planned := map[string]bool{}
	for i := range plan.Probes {
		p := &plan.Probes[i]
		planned[p.Function.Symbol] = true
		if p.Function.Runtime == runtime && !p.Usable() {
			refused = append(refused, p.Function.Symbol)
		}
	}
	for _, group := range catalog.Groups() {
		for i := range group.Functions {
			f := &group.Functions[i]
			if f.Runtime != runtime || !f.Exact || !f.In(filepath.Base(plan.Path)) && (f.Anywhere == "" || !planned[f.Anywhere]) {
				continue
			}
			all++
			if !planned[f.Symbol] {
				absent = append(absent, f.Symbol)
			}
		}
	}
	return absent, refused, all
}

// someOf names a few of many.
func someOf(names []string) string {
	const most = 6
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
