package tracer

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/pjrt"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Functions that no symbol names, but a table of function pointers that the
// library makes in memory: PJRT plugins. The table is read out of a process, and
// from then on its functions are planned like any other's.

// PlanPlugin plans the functions of the groups that a plugin's table has, beside
// those that PlanLibrary finds by their symbols.
func PlanPlugin(e *symbolize.ELF, path string, groups []catalog.Group, table *pjrt.Table) *Plan {
	plan := PlanLibrary(e, path, groups)
	addresses := make(map[string]uint64, len(table.Functions))
	for _, f := range table.Functions {
		addresses[f.Name] = f.Address
	}
	var found []symbolize.Symbol
	var owners []owner
	for g := range groups {
		for f := range groups[g].Functions {
			function := &groups[g].Functions[f]
			if address, ok := addresses[function.Symbol]; ok && function.Table == catalog.PJRTTable {
				found = append(found, symbolize.Symbol{Name: function.Symbol, Address: address})
				owners = append(owners, owner{&groups[g], function})
			}
		}
	}
	if len(found) == 0 {
		return plan
	}
	p, _ := newPlanner(e, nil, owners)
	probes := make([]PlannedProbe, len(found))
	eachParallel(len(found), func(i int) { probes[i] = p.plan(owners[i], found[i]) })
	plan.Probes = append(plan.Probes, probes...)
	return plan
}

// ReadPlugin reads the function table of a library that a process has mapped.
// Its errors are pjrt.Read's, and pjrt.ErrNotBuilt where the library is not
// mapped in whole yet.
func ReadPlugin(pid int, libraries []*process.Library, library *process.Library, e *symbolize.ELF) (*pjrt.Table, error) {
	bias, ok := library.Bias(e)
	if !ok {
		return nil, pjrt.ErrNotBuilt
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
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

// PlanMapped is PlanLibrary for a library that a process has mapped: with the
// functions of its table, if it is a plugin and has made it.
func PlanMapped(p *process.Process, libraries []*process.Library, library *process.Library, e *symbolize.ELF, groups []catalog.Group) *Plan {
	if IsPlugin(e, groups) {
		if table, err := ReadPlugin(p.PID, libraries, library, e); err == nil {
			return PlanPlugin(e, library.Path, groups, table)
		}
	}
	return PlanLibrary(e, library.Path, groups)
}

// IsPlugin reports whether functions of the groups are to be found by a table
// that the library makes.
func IsPlugin(e *symbolize.ELF, groups []catalog.Group) bool {
	_, err := pjrt.Find(e)
	return err == nil && usesTables(groups)
}

// usesTables reports whether any of the groups is found by a table.
func usesTables(groups []catalog.Group) bool {
	for _, g := range groups {
		for i := range g.Functions {
			if g.Functions[i].Table != "" {
				return true
			}
		}
	}
	return false
}

// waitingPlugin is a plugin of one process whose table is not there yet.
type waitingPlugin struct {
	source  *source
	library *process.Library
	hook    *linkSet // on GetPjrtApi, which makes the table
	tries   int
}

// newPlugin plans and attaches a plugin, or waits for its table.
func (s *Session) newPlugin(t *tracedProcess, key fileKey, opened *source, library *process.Library) error {
	table, err := s.readPlugin(t, library, opened.elf)
	if err == nil {
		return s.attachPlugin(t, key, opened, library, table)
	}
	if !errors.Is(err, pjrt.ErrNotBuilt) {
		opened.close()
		s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "library", Source: library.Path, Count: 1, Detail: err.Error()})
		return nil
	}
	w := &waitingPlugin{source: opened, library: library}
	_ = symbolize.Guard(func() {
		if entry, err := pjrt.Find(opened.elf); err == nil {
			// Without the hook the next reading of the maps will do, later.
			w.hook = s.hookFunction(opened, t.process.PID, entry.Address)
		}
	})
	t.waiting[key] = w
	t.hurryUp() // it may have been made just before the hook was in
	return nil
}

func (s *Session) readPlugin(t *tracedProcess, library *process.Library, elf *symbolize.ELF) (*pjrt.Table, error) {
	libraries, err := t.process.Libraries()
	if err != nil {
		return nil, err
	}
	var table *pjrt.Table
	if fault := symbolize.Guard(func() { table, err = ReadPlugin(t.process.PID, libraries, library, elf) }); fault != nil {
		err = fault
	}
	return table, err
}

// pluginTries is how often a table that is not there is looked for in quick
// succession, when something hints that it is being made.
const pluginTries, pluginRetry = 20, 5 * time.Millisecond

func (t *tracedProcess) hurryUp() {
	t.rescanAt, t.hurry = time.Now().Add(pluginRetry), true
}

// retryPlugins begins the quick succession anew.
func (t *tracedProcess) retryPlugins() {
	for _, w := range t.waiting {
		w.tries = 0
	}
}

// retryPlugins looks again for the tables that were not there.
func (s *Session) retryPlugins(t *tracedProcess) error {
	for key, w := range t.waiting {
		if file, known := s.files[key]; known { // another process had its table
			w.close()
			delete(t.waiting, key)
			file.mapped[t.process.PID] = w.library
			if err := s.attachNewcomer(file, t.process.PID); err != nil {
				return err
			}
			continue
		}
		table, err := s.readPlugin(t, w.library, w.source.elf)
		if errors.Is(err, pjrt.ErrNotBuilt) {
			if w.tries++; w.tries < pluginTries {
				t.hurryUp()
			}
			continue
		}
		delete(t.waiting, key)
		w.hook.closeIfAny()
		if err != nil {
			w.source.close()
			s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "library", Source: w.library.Path, Count: 1, Detail: err.Error()})
			continue
		}
		if err := s.attachPlugin(t, key, w.source, w.library, table); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) attachPlugin(t *tracedProcess, key fileKey, opened *source, library *process.Library, table *pjrt.Table) error {
	s.warnPlugin(library.Path, table)
	var plan *Plan
	if err := symbolize.Guard(func() { plan = PlanPlugin(opened.elf, library.Path, s.groups, table) }); err != nil {
		opened.close()
		s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "library", Source: library.Path, Count: 1, Detail: "no probes: " + err.Error()})
		return nil
	}
	return s.newFile(key, opened, plan, t.process.PID, library)
}

// warnPlugin says which functions of a plugin that one would see are not seen.
func (s *Session) warnPlugin(path string, table *pjrt.Table) {
	wanted := map[string]bool{}
	for _, g := range s.groups {
		for i := range g.Functions {
			if g.Functions[i].Table == catalog.PJRTTable {
				wanted[g.Functions[i].Symbol] = true
			}
		}
	}
	for _, unseen := range []struct {
		names  []string
		detail string
	}{
		{table.Outside, "lie in another library, which this plugin wraps, and are not seen through it"},
		{table.Shared, "are one and the same function, and cannot be told apart"},
	} {
		var names []string
		for _, name := range unseen.names {
			if wanted[name] {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			s.warn(Warning{
				TSNS: time.Now().UnixNano(), Kind: "library", Source: path, Count: int64(len(names)),
				Detail: fmt.Sprintf("functions of the PJRT plugin that %s: %s", unseen.detail, strings.Join(names, ", ")),
			})
		}
	}
	if table.Newer > 0 {
		s.warn(Warning{
			TSNS: time.Now().UnixNano(), Kind: "library", Source: path, Count: int64(table.Newer),
			Detail: fmt.Sprintf("the plugin speaks PJRT %d.%d and has functions that are newer than 0.%d: they are not seen", table.Major, table.Minor, pjrt.KnownMinor),
		})
	}
}

// forgetPlugins gives up waiting for a process's plugins, and says so.
func (s *Session) forgetPlugins(t *tracedProcess) {
	for key, w := range t.waiting {
		s.warn(Warning{
			TSNS: time.Now().UnixNano(), Kind: "library", Source: w.library.Path, Count: 1,
			Detail: fmt.Sprintf("%s in pid %d: nothing of it was seen", pjrt.ErrNotBuilt, t.process.PID),
		})
		w.close()
		delete(t.waiting, key)
	}
}

func (w *waitingPlugin) close() {
	w.hook.closeIfAny()
	w.source.close()
}

// closeIfAny is Close of a set that may be nil.
func (s *linkSet) closeIfAny() {
	if s != nil {
		s.Close()
	}
}
