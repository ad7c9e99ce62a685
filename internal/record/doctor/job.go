package doctor

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/record/injection"
	"github.com/ebpfprof/ebpfprof/internal/record/ondemand"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// jobChecks say what of a process would be seen.
func jobChecks(p *process.Process) ([]check, error) {
	checks := []check{{fmt.Sprintf("pid %d", p.PID), stateOK, p.Exe}}
	if p.NSPID != nil && *p.NSPID != p.PID {
		checks = append(checks, check{"its namespaces", stateOK, fmt.Sprintf("pid %d in its own pid namespace; that is no hindrance", *p.NSPID)})
	}
	if features.CheckPermitted() == nil {
		if err := features.CheckHazards(features.Probe(), []int{p.PID}); err != nil {
			return append(checks, check{"hazard", stateMissing, err.Error()}), err
		}
		for _, h := range features.HazardsHere(features.Probe()) {
			if h.Returns && h.Concerns(p.PID) {
				checks = append(checks, check{"hazard: " + h.Name, stateDegraded, "recorded without return probes, so that runtime calls have no " +
					"status and no results: " + h.Harm})
			}
		}
	}
	if by := features.Debugger(p.PID); by != 0 {
		checks = append(checks, check{"debugger", stateDegraded, fmt.Sprintf("pid %d traces it: %s", by, features.DebuggerHarm)})
	}
	libraries, err := p.Libraries()
	if err != nil {
		return append(checks, check{"libraries", stateMissing, err.Error()}), err
	}
	checks = append(checks, pythonChecks(p, libraries)...)
	checks = append(checks, nativeChecks(p, libraries)...)
	found := p.Frameworks(libraries)
	for _, f := range found {
		checks = append(checks, check{f.Name, stateOK, f.Version})
	}
	if len(found) > 0 && found[0].Name == "pytorch" {
		checks = append(checks, profilerCheck(p))
	}
	if len(found) == 0 {
		checks = append(checks, check{"framework", stateInfo, "neither PyTorch nor JAX is mapped (yet): attach waits for it"})
	}
	plans, err := planProcess(p.PID, catalog.Groups())
	if err != nil {
		return append(checks, check{"probes", stateDegraded, "no library that the catalog knows is mapped (yet): attach would wait for one and " +
			"capture nothing until then"}), nil
	}
	for _, plan := range plans {
		checks = append(checks, planCheck(plan))
	}
	return append(checks, runtimeChecks(plans, counterSources())...), nil
}

// profilerCheck says whether the job's own profiler can be asked for device times.
func profilerCheck(p *process.Process) check {
	if why := ondemand.Askable(p); why != "" {
		return check{"device times", stateInfo, "--device-times profiler has nobody to ask: " + why + cuptiNote()}
	}
	return check{"device times", stateOK, "its own profiler can be asked (--device-times profiler)"}
}

// cuptiNote says how else there are device times, if this program can.
func cuptiNote() string {
	if injection.Available() != nil {
		return ""
	}
	return "; on NVIDIA's devices, ebpfprof run --device-times cupti starts a job with exact ones"
}

func planCheck(plan *plan.Plan) check {
	usable, exact, stepped := 0, 0, 0
	for i := range plan.Probes {
		p := &plan.Probes[i]
		if p.Usable() {
			usable++
		}
		if p.Return || len(p.Exits) > 0 {
			exact++
		}
		if p.Entry.Cost == site.CostStepped {
			stepped++
		}
	}
	why := []string{fmt.Sprintf("%d of %d functions can be probed, %d with an exact end", usable, len(plan.Probes), exact)}
	if stepped > 0 {
		why = append(why, fmt.Sprintf("%d at a single-stepped instruction (expensive in a virtual machine)", stepped))
	}
	k := check{filepath.Base(plan.Path), stateOK, strings.Join(why, "; ")}
	if usable == 0 {
		k.State = stateMissing
	}
	return k
}
