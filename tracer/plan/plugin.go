package plan

import (
	"fmt"
	"runtime"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/pjrt"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Functions that no symbol names, but a table of function pointers that the
// library makes in memory: PJRT plugins. The table is read out of a process, and
// from then on its functions are planned like any other's.

// Plugin plans the functions of the groups that a plugin's table has, beside
// those that Begin finds by their symbols.
func Plugin(e *elf.File, path string, groups []spec.Group, table *pjrt.Table) *Plan {
	plan := Begin(e, path, groups, maxPlanning)
	addresses := make(map[string]uint64, len(table.Functions))
	for _, f := range table.Functions {
		addresses[f.Name] = f.Address
	}
	var found []elf.Symbol
	var owners []owner
	for g := range groups {
		for f := range groups[g].Functions {
			function := &groups[g].Functions[f]
			if address, ok := addresses[function.Symbol]; ok && function.Table == spec.PJRTTable {
				found = append(found, elf.Symbol{Name: function.Symbol, Address: address})
				owners = append(owners, owner{&groups[g], function})
			}
		}
	}
	if len(found) == 0 {
		return plan
	}
	p, _ := newPlanner(e, nil, owners)
	probes := make([]Probe, len(found))
	eachParallel(len(found), runtime.GOMAXPROCS(0), &meter{}, func(i int) { probes[i] = p.plan(owners[i], found[i]) })
	plan.Probes = append(plan.Probes, probes...)
	return plan
}

// ReadPlugin reads the function table of a library that a process has mapped.
// Its errors are pjrt.Read's, and pjrt.ErrNotBuilt where the library is not
// mapped in whole yet.
func ReadPlugin(pid int, libraries []*process.Library, library *process.Library, e *elf.File) (*pjrt.Table, error) {
	bias, ok := library.Bias(e)
	if !ok {
		return nil, pjrt.ErrNotBuilt
	}
	memory, err := process.OpenMemory(pid)
	if err != nil {
		return nil, fmt.Errorf("reading the memory of pid %d: %w", pid, err)
	}
	defer memory.Close()
	code := func(address uint64) bool {
		for _, l := range libraries {
			for _, s := range l.Segments {
				if s.Executable && address >= s.Start && address < s.End {
					return true
				}
			}
		}
		return false
	}
	return pjrt.Read(e, pjrt.Process{Memory: memory, Bias: bias, Code: code})
}

// Mapped is Begin for a library that a process has mapped: with the
// functions of its table, if it is a plugin and has made it.
func Mapped(p *process.Process, libraries []*process.Library, library *process.Library, e *elf.File, groups []spec.Group) *Plan {
	if IsPlugin(e, groups) {
		if table, err := ReadPlugin(p.PID, libraries, library, e); err == nil {
			return Plugin(e, library.Path, groups, table)
		}
	}
	groups, asked := cutAsked(groups)
	plan := Begin(e, library.Path, groups, maxPlanning)
	plan.ask(asked, maxPlanning)
	return plan
}

// IsPlugin reports whether functions of the groups are to be found by a table
// that the library makes.
func IsPlugin(e *elf.File, groups []spec.Group) bool {
	_, err := pjrt.Find(e)
	return err == nil && usesTables(groups)
}

// usesTables reports whether any of the groups is found by a table.
func usesTables(groups []spec.Group) bool {
	for _, g := range groups {
		for i := range g.Functions {
			if g.Functions[i].Table != "" {
				return true
			}
		}
	}
	return false
}
