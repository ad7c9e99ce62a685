package plan

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// What a user asks for beside the catalog is planned by itself: it is never kept (the next recording asks for something
// else), and a function of the catalog keeps the probe that it has there, whose rows other rows need.

// cutAsked parts the groups that a user asks for, which are the last, from those of the catalog.
func cutAsked(groups []spec.Group) (catalog, asked []spec.Group) {
	at := slices.IndexFunc(groups, func(g spec.Group) bool { return g.Asked })
	if at < 0 {
		return groups, nil
	}
	return groups[:at], groups[at:]
}

// Missing is what a user asked for and a file does not have, though it is the file that was named.
type Missing struct {
	Function *spec.Function
	Near     []string // names in the file that are like it
	Taken    bool     // it is there, and probed as one of the catalog
}

// maxAsked functions of one file are planned for a user: a name may have overloads.
const maxAsked = 1024

// ask plans what a user asks for in the plan's file, until that has taken so much of the CPU.
func (p *Plan) ask(groups []spec.Group, most time.Duration) {
	base := filepath.Base(p.Path)
	var prefixes []string
	var owners, notes []owner
	for g := range groups {
		for f := range groups[g].Functions {
			switch function := &groups[g].Functions[f]; {
			case !function.Lives(base, p.ELF):
			case function.Action == spec.Instant:
				notes = append(notes, owner{&groups[g], function})
			default:
				prefixes = append(prefixes, function.Symbol)
				owners = append(owners, owner{&groups[g], function})
			}
		}
	}
	if len(owners)+len(notes) == 0 {
		return
	}
	begun := &meter{}
	stint := begun.begin()
	defer func() { stint.end(); p.Used += begun.used() }()
	planner, found := &planner{file: p.ELF}, []elf.Symbol(nil)
	if len(owners) > 0 { // else not one symbol need be read
		planner, found = newPlanner(p.ELF, prefixes, owners)
	}
	taken := map[uint64]bool{}
	for i := range p.Probes {
		taken[p.Probes[i].Address] = true
	}
	p.askFunctions(planner, owners, found, taken, func() bool { stint.count(); return begun.used() < most })
	p.askNotes(planner, notes, taken)
}

func (p *Plan) askFunctions(with *planner, owners []owner, found []elf.Symbol, taken map[uint64]bool, goOn func() bool) {
	seen, there := map[uint64]bool{}, map[*spec.Asked]*Missing{}
	for _, s := range found {
		if base, ok := strings.CutSuffix(s.Name, ".cold"); ok {
			with.addCold(base, s)
		}
	}
	for _, s := range found {
		o := owners[s.Prefix]
		asked := o.function.Asked
		if strings.Contains(s.Name, ".") || s.Indirect || seen[s.Address] || o.function.Exact && s.Name != o.function.Symbol {
			continue
		}
		seen[s.Address] = true
		if taken[s.Address] {
			there[asked] = &Missing{Function: o.function, Taken: true}
			continue
		}
		there[asked] = nil
		probe := unplanned(with, o, s)
		if goOn() && len(seen) <= maxAsked {
			probe = with.plan(o, s)
		}
		p.Probes = append(p.Probes, probe)
	}
	for _, o := range owners {
		missing, ok := there[o.function.Asked]
		if !ok {
			missing = &Missing{Function: o.function, Near: Nearest(o.function.Asked.Symbol, functionNames(p.ELF, o.function.Asked.Symbol))}
		}
		there[o.function.Asked] = nil // said once, in whichever spelling
		if missing != nil {
			p.Missing = append(p.Missing, *missing)
		}
	}
}

var errNoNop = errors.New("what is at the place that the note names is no instruction that does nothing")

// askNotes makes a probe of each place of the USDT probes.
func (p *Plan) askNotes(with *planner, notes []owner, taken map[uint64]bool) {
	if len(notes) == 0 {
		return
	}
	all := p.ELF.Probes()
	for _, o := range notes {
		found := false
		for i := range all {
			if note := &all[i]; (spec.Note{Provider: note.Provider, Name: note.Name}) == o.function.Asked.Note && !taken[note.Address] {
				taken[note.Address], found = true, true
				p.Probes = append(p.Probes, with.note(o, note))
			}
		}
		if !found && len(all) > 0 {
			var names []string
			for _, note := range all {
				names = append(names, spec.Note{Provider: note.Provider, Name: note.Name}.String())
			}
			p.Missing = append(p.Missing, Missing{Function: o.function, Near: Nearest(o.function.Asked.Note.String(), names)})
		}
	}
}

// note is the probe of one place of a USDT probe: its arguments lie elsewhere at each.
func (l *planner) note(o owner, note *elf.Probe) Probe {
	function, asked := *o.function, *o.function.Asked
	asked.Arguments, function.Values = operands(note.Arguments, l.file.Machine(), asked.Arguments)
	function.Asked = &asked
	probe := Probe{
		Group: o.group, Function: &function, Symbol: asked.Note.String(), Address: note.Address,
		Call: &event.Call{Layer: function.Layer, Category: function.Category, Name: function.Label},
	}
	code := l.file.CodeAt(note.Address, instructionBytes)
	switch cost, size, ok := nop(l.file, note.Address, code); {
	case ok:
		probe.Entry = site.Entry{Cost: cost, Reason: "the instruction of the USDT probe, which does nothing" + unread(asked.Arguments)}
		probe.size = size
	default:
		probe.EntryErr = errNoNop
	}
	if note.Counter != 0 {
		if at, ok := l.file.FileOffset(note.Counter); ok && !l.file.IsCode(note.Counter) {
			probe.Counter = at
		} else {
			probe.EntryErr = errNoCounter
		}
	}
	probe.code, _ = probe.sum(l.file.CodeAt)
	probe.Spec = l.buildSpec(&probe)
	return probe
}

// unread says which arguments are left out.
func unread(arguments []spec.Argument) (said string) {
	for _, a := range arguments {
		if a.Unread != "" {
			said += fmt.Sprintf("; %s is where probes cannot read (%s)", a.Name, a.Unread)
		}
	}
	return said
}

var errNoCounter = errors.New("the count of who looks, which its note names, is not in the file's data: the program would not call it")

// nop is what a probe costs on the instruction at a place, if that does nothing.
func nop(e *elf.File, address uint64, code []byte) (cost site.Cost, size uint64, ok bool) {
	if !e.IsCode(address) {
		return 0, 0, false
	}
	if e.Machine() == elf.MachineARM64 {
		return site.CostEmulated, 4, address%4 == 0 && bytes.HasPrefix(code, []byte{0x1f, 0x20, 0x03, 0xd5})
	}
	switch {
	case bytes.HasPrefix(code, []byte{0x90}):
		return site.CostEmulated, 1, true
	case bytes.HasPrefix(code, []byte{0x0f, 0x1f, 0x44, 0, 0}):
		return site.CostNop5, 5, true
	}
	return 0, 0, false
}
