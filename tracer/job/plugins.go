package job

import (
	"errors"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/pjrt"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// plugins are the PJRT plugins that processes map.
type plugins struct{ job *Job }

// maxUnbuilt plugins of one process are waited for: each has a descriptor and a hook.
const maxUnbuilt = 16

// unbuiltPlugin is a plugin of one process whose table is not there yet.
type unbuiltPlugin struct {
	source  *plan.Source
	library *process.Library
	hook    *kernel.Links // on GetPjrtApi, which makes the table
	tries   int
}

// newPlugin plans and attaches a plugin, or waits for its table.
func (p *plugins) newPlugin(t *traced, opened *plan.Source, library *process.Library) error {
	table, err := p.readPlugin(t, library, opened.ELF)
	if err == nil {
		return p.attachPlugin(t, opened, library, table)
	}
	if !errors.Is(err, pjrt.ErrNotBuilt) {
		opened.Close()
		if t.said.isNewReason(err) {
			p.job.warnOf("library", library.Path, 1, "%v", err)
		}
		return nil
	}
	if len(t.plugins) >= maxUnbuilt {
		opened.Close()
		p.job.warnOf("incomplete", "plugin_quota", 1, "pid %d has %d PJRT plugins already that have not made their function table: nothing "+
			"of %s is seen", t.process.PID, maxUnbuilt, library.Path)
		return nil
	}
	w := &unbuiltPlugin{source: opened, library: library}
	_ = elf.Guard(func() {
		if entry, err := pjrt.Find(opened.ELF); err == nil {
			// Without the hook the next reading of the maps will do, later.
			w.hook = p.job.hookFunction(opened, t.process.PID, entry.Address)
		}
	})
	t.plugins[library.ID()] = w
	t.readSoon(pluginRetry) // it may have been made just before the hook was in
	return nil
}

func (p *plugins) readPlugin(t *traced, library *process.Library, e *elf.File) (*pjrt.Table, error) {
	libraries, err := t.process.Libraries()
	if err != nil {
		return nil, err
	}
	var table *pjrt.Table
	if fault := elf.Guard(func() { table, err = plan.ReadPlugin(t.process.PID, libraries, library, e) }); fault != nil {
		err = fault
	}
	return table, err
}

// pluginTries is how often a table that is not there is looked for in quick
// succession, when something hints that it is being made.
const pluginTries, pluginRetry = 20, 5 * time.Millisecond

// retryPlugins looks again for the tables that were not there.
func (p *plugins) retryPlugins(t *traced) error {
	for id, w := range t.plugins {
		if file, known := p.job.config.Probes.Files()[id]; known { // another process had its table
			w.close()
			delete(t.plugins, id)
			if err := p.job.config.Probes.Join(file, t.process.PID, w.library); err != nil {
				return err
			}
			continue
		}
		table, err := p.readPlugin(t, w.library, w.source.ELF)
		if errors.Is(err, pjrt.ErrNotBuilt) {
			if w.tries++; w.tries < pluginTries {
				t.readSoon(pluginRetry)
			}
			continue
		}
		delete(t.plugins, id)
		w.hook.CloseIfAny()
		if errors.Is(err, process.ErrExited) {
			w.source.Close() // its exit is on the way
			continue
		}
		if err != nil {
			w.source.Close()
			p.job.warnOf("library", w.library.Path, 1, "%v", err)
			continue
		}
		if err := p.attachPlugin(t, w.source, w.library, table); err != nil {
			return err
		}
	}
	return nil
}

func (p *plugins) attachPlugin(t *traced, opened *plan.Source, library *process.Library, table *pjrt.Table) error {
	p.warnPlugin(library.Path, table)
	var made *plan.Plan
	if err := elf.Guard(func() { made = plan.Plugin(opened.ELF, library.Path, p.job.config.Groups, table) }); err != nil {
		opened.Close()
		p.job.warnOf("library", library.Path, 1, "no probes: %v", err)
		return nil
	}
	return p.job.probe(t, opened, made, library)
}

// warnPlugin says which functions of a plugin that one would see are not seen.
func (p *plugins) warnPlugin(path string, table *pjrt.Table) {
	wanted := map[string]bool{}
	for _, g := range p.job.config.Groups {
		for i := range g.Functions {
			if g.Functions[i].Table == spec.PJRTTable {
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
			p.job.warnOf("library", path, len(names), "functions of the PJRT plugin that %s: %s", unseen.detail, strings.Join(names, ", "))
		}
	}
	if table.Newer > 0 {
		p.job.warnOf("library", path, int(table.Newer), "the plugin speaks PJRT %d.%d and has functions that are newer than 0.%d: they "+
			"are not seen", table.Major, table.Minor, pjrt.KnownMinor)
	}
}

// forgetPlugins gives up waiting for a process's plugins, and says so.
func (p *plugins) forgetPlugins(t *traced) {
	for id, w := range t.plugins {
		p.job.warnOf("library", w.library.Path, 1, "%s in pid %d: nothing of it was seen", pjrt.ErrNotBuilt, t.process.PID)
		w.close()
		delete(t.plugins, id)
	}
}

func (w *unbuiltPlugin) close() {
	w.hook.CloseIfAny()
	w.source.Close()
}
