package tracer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/pjrt"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// waitingPlugin is a plugin of one process whose table is not there yet.
type waitingPlugin struct {
	source  *plan.Source
	library *process.Library
	hook    *kernel.Links // on GetPjrtApi, which makes the table
	tries   int
}

// newPlugin plans and attaches a plugin, or waits for its table.
func (s *Session) newPlugin(t *tracedProcess, key process.FileID, opened *plan.Source, library *process.Library) error {
	table, err := s.readPlugin(t, library, opened.ELF)
	if err == nil {
		return s.attachPlugin(t, key, opened, library, table)
	}
	if !errors.Is(err, pjrt.ErrNotBuilt) {
		opened.Close()
		s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "library", Source: library.Path, Count: 1, Detail: err.Error()})
		return nil
	}
	if len(t.waiting) >= maxWaitingPlugins {
		opened.Close()
		s.warn(Warning{
			TSNS: time.Now().UnixNano(), Kind: "incomplete", Source: "plugin_quota", Count: 1,
			Detail: fmt.Sprintf("pid %d has %d PJRT plugins already that have not made their function table: nothing of %s is seen", t.process.PID, maxWaitingPlugins, library.Path),
		})
		return nil
	}
	w := &waitingPlugin{source: opened, library: library}
	_ = symbolize.Guard(func() {
		if entry, err := pjrt.Find(opened.ELF); err == nil {
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
	if fault := symbolize.Guard(func() { table, err = plan.ReadPlugin(t.process.PID, libraries, library, elf) }); fault != nil {
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
		table, err := s.readPlugin(t, w.library, w.source.ELF)
		if errors.Is(err, pjrt.ErrNotBuilt) {
			if w.tries++; w.tries < pluginTries {
				t.hurryUp()
			}
			continue
		}
		delete(t.waiting, key)
		w.hook.CloseIfAny()
		if err != nil {
			w.source.Close()
			s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "library", Source: w.library.Path, Count: 1, Detail: err.Error()})
			continue
		}
		if err := s.attachPlugin(t, key, w.source, w.library, table); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) attachPlugin(t *tracedProcess, key process.FileID, opened *plan.Source, library *process.Library, table *pjrt.Table) error {
	s.warnPlugin(library.Path, table)
	var made *plan.Plan
	if err := symbolize.Guard(func() { made = plan.Plugin(opened.ELF, library.Path, s.chosen.groups, table) }); err != nil {
		opened.Close()
		s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "library", Source: library.Path, Count: 1, Detail: "no probes: " + err.Error()})
		return nil
	}
	return s.newFile(key, opened, made, t.process.PID, library)
}

// warnPlugin says which functions of a plugin that one would see are not seen.
func (s *Session) warnPlugin(path string, table *pjrt.Table) {
	wanted := map[string]bool{}
	for _, g := range s.chosen.groups {
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
	w.hook.CloseIfAny()
	w.source.Close()
}
