package plan

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/torch"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
	"github.com/ebpfprof/ebpfprof/tracer/site"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
)

// Probe is one function of one library and where its probes would sit.
type Probe struct {
	Group    *spec.Group
	Function *spec.Function
	Symbol   string
	Address  uint64      // virtual address of the function in the file
	Call     *event.Call // what its spans share

	Entry    site.Entry
	EntryErr error // why there is no entry site
	Exits    []site.Exit
	ExitErr  error // why its end comes from the next entry, or why it has no end
	Return   bool  // a return probe sees the end
	// UsedFlag is the address of the byte that becomes non-zero with the first
	// call in a process, 0 where the function has none.
	UsedFlag uint64

	size uint64  // of the function's code
	code codeSum // of what the sites were chosen by
	Spec bpf.CallProbeSpec
	// Shapes is where the call has its tensors, nil where their shapes are not read.
	Shapes *tensor.Operator
	// Counter is where the file has the count of who looks at the probe, 0 if it has none: the program calls a USDT probe
	// only where that is above 0. The kernel counts.
	Counter uint64
	// ResultSeen: at each exit the returned value is where the caller finds it.
	ResultSeen bool
	// Unknown has a bit for each of the function's values whose place this library does not tell.
	Unknown uint32
}

// maxProbes is how many probes of one file there are at the most, about: one process has
// half of the places in the table of package kernel, and no more.
const maxProbes = 8192

// Plan is every probe that one library file can have.
type Plan struct {
	Path    string
	BuildID string
	Probes  []Probe
	ELF     *elf.File
	Begun   time.Time
	Used    time.Duration // of the CPU, by this planning
	Rest    *Rest         // functions that had no turn; nil: all had
	Missing []Missing     // of what a user asked for
	// OnlyAsked: no function of the catalog is looked for in the file.
	OnlyAsked bool
}

// Usable reports whether anything of the probe can be attached.
func (p *Probe) Usable() bool {
	return p.EntryErr == nil && (p.Function.Action != spec.ScopeBegin || p.ExitErr == nil)
}

// Library is Begin, and all of the rest.
func Library(e *elf.File, path string, groups []spec.Group) *Plan {
	groups, asked := cutAsked(groups)
	plan := Begin(e, path, groups, maxPlanning)
	defer plan.ask(asked, maxPlanning)
	for rest := plan.Rest; rest != nil; {
		later := rest.Next(maxPlanning)
		plan.Take(later)
		rest = later.Rest
	}
	plan.Rest = nil
	return plan
}

// Begin finds the functions of the groups in a library, by the base name under which it
// is mapped, and plans their sites, until that has taken so much of the CPU; the Plan's
// Rest are those that had no turn. A library that no group names gives a Plan without
// probes.
func Begin(e *elf.File, path string, groups []spec.Group, most time.Duration) *Plan {
	plan := &Plan{Path: path, BuildID: e.BuildID(), ELF: e, Begun: time.Now()}
	base := filepath.Base(path)
	var prefixes []string
	var owners []owner
	for g := range groups {
		for f := range groups[g].Functions {
			function := &groups[g].Functions[f]
			if function.Lives(base, e) && holds(e, function.Holds) {
				prefixes = append(prefixes, function.Symbol)
				owners = append(owners, owner{&groups[g], function})
			}
		}
	}
	if len(prefixes) == 0 {
		plan.OnlyAsked = true
		return plan
	}
	p, found := newPlanner(e, prefixes, owners)
	seen := map[uint64]bool{}
	var matched []elf.Symbol
	for _, s := range found {
		if base, ok := strings.CutSuffix(s.Name, ".cold"); ok {
			p.addCold(base, s)
			continue
		}
		if !s.Indirect && !strings.Contains(s.Name, ".") && p.belongs(owners[s.Prefix].function) && matches(owners[s.Prefix].function, s.Name) &&
			!seen[s.Address] {
			seen[s.Address] = true
			matched = append(matched, s)
		}
	}
	// Where time or room runs out, it is not the anchors, which mark steps, that have none.
	slices.SortStableFunc(matched, func(a, b elf.Symbol) int {
		return cmp.Compare(owners[a.Prefix].group.Tier, owners[b.Prefix].group.Tier)
	})
	matched = matched[:min(len(matched), maxProbes)] // there is no room for more in the kernel
	turns := make([]turn, len(matched))
	for i, s := range matched {
		turns[i] = turn{owners[s.Prefix], s}
	}
	plan.Used = p.reading.used()
	plan.take(p, turns, most, runtime.GOMAXPROCS(0))
	return plan
}

// owner is the row of the catalog that a symbol belongs to.
type owner struct {
	group    *spec.Group
	function *spec.Function
}

// matches completes the prefix search: the whole name where the catalog gives
// it, the method "call" of an operator's class.
func matches(f *spec.Function, symbol string) bool {
	if f.Exact {
		return symbol == f.Symbol
	}
	if f.Name == spec.FromOperator {
		_, method, ok := torch.OperatorClass(symbol)
		return ok && strings.HasPrefix(f.Suffix, fmt.Sprintf("%d%sE", len(method), method))
	}
	return true
}

// belongs reports whether a function of the catalog is to be looked for in a
// library that defines what this one does.
func (p *planner) belongs(f *spec.Function) bool {
	return (f.Requires == "" || p.defined[f.Requires]) && (f.Unless == "" || !p.defined[f.Unless])
}

// planner is read only while the sites are planned: on all cores.
type planner struct {
	file      *elf.File
	cold      map[string][]site.Fragment
	operators map[string]torch.OperatorName
	defined   map[string]bool // which symbol prefixes the library has
	accessors accessors
	functions *elf.FunctionIndex
	reading   meter // of what the planning of every site needs
}

// newPlanner reads what the planning of every site needs, and the functions of
// the catalog.
func newPlanner(e *elf.File, prefixes []string, owners []owner) (p *planner, found []elf.Symbol) {
	p = &planner{
		file: e, cold: map[string][]site.Fragment{}, defined: map[string]bool{oldOptional: false}, accessors: accessors{},
	}
	operators := false
	for _, o := range owners {
		operators = operators || o.function.Name == spec.FromOperator
		for _, symbol := range []string{o.function.Requires, o.function.Unless} {
			if symbol != "" {
				p.defined[symbol] = false
			}
		}
		for _, v := range o.function.Values {
			p.accessors.want(v.Member)
			for _, variant := range v.Variants {
				p.defined[variant.Symbol] = false
			}
		}
	}
	reads := []func(){
		func() { p.functions = e.IndexFunctions() },
		func() { found = p.read(prefixes, owners) },
		func() { e.NoReturn(0) }, // its first call reads the symbols
		func() {
			if operators {
				p.operators = torch.OperatorNames(e)
			}
		},
	}
	eachParallel(len(reads), runtime.GOMAXPROCS(0), &p.reading, func(i int) { reads[i]() })
	p.accessors.look(p)
	return p, found
}

// read finds the functions of the catalog, and notes which of the symbols are
// there that tell one layout of an object from another: in one pass, because a
// wheel's libtorch has 90 MB of symbols.
func (p *planner) read(prefixes []string, owners []owner) []elf.Symbol {
	wanted := slices.Clone(prefixes)
	for symbol := range p.defined {
		wanted = append(wanted, symbol)
	}
	for symbol := range p.accessors {
		wanted = append(wanted, symbol)
	}
	found := p.file.FunctionsWithPrefixes(wanted)
	owned := found[:0]
	for _, s := range found {
		p.accessors.found(s)
		for symbol := range p.defined {
			p.defined[symbol] = p.defined[symbol] || strings.HasPrefix(s.Name, symbol) && !strings.Contains(s.Name, ".")
		}
		if s.Prefix >= len(owners) {
			if s.Prefix = longestPrefix(s.Name, prefixes); s.Prefix < 0 {
				continue
			}
		}
		owned = append(owned, s)
	}
	return owned
}

func longestPrefix(name string, prefixes []string) int {
	longest := -1
	for i, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) && (longest < 0 || len(prefix) > len(prefixes[longest])) {
			longest = i
		}
	}
	return longest
}

func (p *planner) addCold(name string, s elf.Symbol) {
	p.cold[name] = append(p.cold[name], site.Fragment{Address: s.Address, Code: p.file.CodeAt(s.Address, min(s.Size, maxFunctionBytes))})
}

// unplanned is the probe of a function that has no site yet.
func unplanned(p *planner, o owner, s elf.Symbol) Probe {
	function := o.function
	return Probe{
		Group: o.group, Function: function, Symbol: s.Name, Address: s.Address, EntryErr: errNoTurn,
		Call: &event.Call{
			Layer: function.Layer, Category: function.Category, Runtime: function.Runtime,
			Name: p.name(function, s.Name),
		},
	}
}

func (p *planner) plan(o owner, s elf.Symbol) Probe {
	function, probe := o.function, unplanned(p, o, s)
	code := p.code(s)
	need := need(function)
	probe.Entry, probe.EntryErr = site.PlanEntry(code, need)
	p.planShapes(&probe, code, need)
	if function.AtTailJump {
		probe.Entry, probe.EntryErr = tailJump(code)
	}
	p.planEnd(&probe, code)
	if function.Asked == nil {
		probe.UsedFlag = usedFlag(code)
	}
	probe.size = uint64(len(code.Code))
	probe.code, _ = probe.sum(p.file.CodeAt)
	probe.Spec = p.buildSpec(&probe)
	return probe
}

// tailJump is the one jump with which a function ends in another.
func tailJump(code site.Function) (site.Entry, error) {
	exits, err := site.PlanExits(code, false)
	if err != nil {
		return site.Entry{}, err
	}
	if e := exits[0]; len(exits) == 1 && e.TailCall && e.DisplacementKnown {
		return site.Entry{Offset: e.Offset, Displacement: e.Displacement, Cost: e.Cost, Reason: e.Reason}, nil
	}
	return site.Entry{}, errNoTailJump
}

// planEnd decides which probes see the call end. This is the one place that
// puts a return probe anywhere: only on C functions that the catalog vouches for, and on
// what is a jump to one.
func (p *planner) planEnd(probe *Probe, code site.Function) {
	switch probe.Function.End {
	case spec.Return:
		probe.Return = probe.EntryErr == nil
		if to := probe.Function.JumpsTo; probe.Return && to != "" && !jumpsTo(p.file, code, to) {
			probe.Return, probe.ExitErr = false, errNoJump
		}
	case spec.ExitSites:
		p.planExits(probe, code)
		for _, e := range probe.Exits {
			switch {
			case e.Offset == probe.Entry.Offset && probe.EntryErr == nil:
				probe.Exits, probe.ExitErr = nil, errSameSite
			case e.CallsAfter && probe.Function.Action == spec.Span:
				// What is thrown after the site would pass for a normal return.
				probe.Exits, probe.ExitErr = nil, errThrowsAfter
			}
		}
	}
}

// planExits finds the exit sites of a function.
func (p *planner) planExits(probe *Probe, code site.Function) {
	f := probe.Function
	if f.Asked != nil {
		p.planAskedExits(probe, code)
		return
	}
	// A stepped site is bearable where there are few calls a step.
	if f.HasResults() && (f.Action == spec.Span || f.ExpensiveEnd) {
		probe.Exits, probe.ExitErr = site.PlanResults(code)
		p.keepApart(probe, code)
		return
	}
	probe.Exits, probe.ExitErr = site.PlanExits(code, probe.Group.Tier == spec.Anchor && !probe.Group.Launches || f.ExpensiveEnd)
	if f.ExpensiveEnd && slices.ContainsFunc(probe.Exits, func(e site.Exit) bool { return e.CallsAfter }) {
		probe.Exits, probe.ExitErr = site.PlanResults(code) // its last instruction, after all calls
	}
}

// planAskedExits finds those of a function that nobody has looked at: whatever it does last, its time is to be whole.
func (p *planner) planAskedExits(probe *Probe, code site.Function) {
	if probe.Function.Asked.Returned != nil {
		exits, err := site.PlanReturned(code)
		if probe.ResultSeen = err == nil; probe.ResultSeen {
			probe.Exits = exits
		}
	}
	if !probe.ResultSeen {
		probe.Exits, probe.ExitErr = site.PlanEnds(code)
	}
	p.keepApart(probe, code)
}

// keepApart moves an entry that sits where the results of the call are read, in
// a function so short that its one cheap instruction is its last: to a more expensive one
// before it.
func (p *planner) keepApart(probe *Probe, code site.Function) {
	if probe.EntryErr != nil {
		return
	}
	for _, e := range probe.Exits {
		if e.Offset == probe.Entry.Offset && e.Offset > 0 {
			n := need(probe.Function)
			n.Before = e.Offset
			probe.Entry, probe.EntryErr = site.PlanEntry(code, n)
		}
	}
}

func (p *planner) code(s elf.Symbol) site.Function {
	size := s.Size
	if start, end, ok := p.file.Extent(s.Address); ok && start == s.Address && (size == 0 || end-start < size) {
		size = end - start
	}
	size = min(size, maxFunctionBytes)
	arch := site.AMD64
	if p.file.Machine() == elf.MachineARM64 {
		arch = site.ARM64
	}
	return site.Function{
		Arch: arch, Address: s.Address, Code: p.file.CodeAt(s.Address, size), Cold: p.cold[s.Name],
		NoReturn: p.file.NoReturn,
		Leaf: func(address uint64) bool {
			name, ok := p.file.PLTTarget(address)
			return ok && site.LeafName(name)
		},
		NoThrow:       p.noThrow,
		FunctionStart: p.starts,
		Part:          p.part,
		Read:          func(address uint64, b []byte) bool { return copy(b, p.file.CodeAt(address, uint64(len(b)))) == len(b) },
	}
}

// noThrow reports whether a call to an address does not throw, by the name of
// what it calls.
func (p *planner) noThrow(address uint64) bool {
	name, ok := p.file.PLTTarget(address)
	if !ok {
		name = p.functions.Name(address)
	}
	return site.NoThrowName(name)
}

// starts reports whether a function or a linkage stub begins at an address. The
// frame descriptions would not do: a function's split-off half has one too.
func (p *planner) starts(address uint64) bool {
	if p.functions.Begins(address) {
		return true
	}
	_, ok := p.file.PLTTarget(address)
	return ok
}

// part is the piece of code around an address, as its frame description
// bounds it: the split-off half of a function, when a jump leads there.
func (p *planner) part(address uint64) (site.Fragment, bool) {
	start, end, ok := p.file.Extent(address)
	if !ok {
		return site.Fragment{}, false
	}
	return site.Fragment{Address: start, Code: p.file.CodeAt(start, min(end-start, maxFunctionBytes))}, true
}

func (p *planner) name(f *spec.Function, symbol string) string {
	if f.Name != spec.FromOperator {
		return f.Label
	}
	class, _, _ := torch.OperatorClass(symbol)
	if name, ok := p.operators[class]; ok {
		return name.Op
	}
	return "aten::" + class
}

// need lists what must still be in place at the entry site.
func need(f *spec.Function) site.Need {
	n := site.Need{Return: f.End == spec.Return}
	for _, v := range f.Values {
		if v.Stack || v.Caller {
			n.Stack = true
		} else if !v.Delay {
			n.Args |= 1 << v.Index
		}
		n.Memory = n.Memory || v.Derefs > 0 && !v.AtReturn
	}
	n.Memory = n.Memory || f.Asked != nil && f.Asked.Strings() != 0
	if f.Text != spec.NoText && f.Text != spec.CStringOut {
		n.Memory = true
		if f.Text != spec.Bytes && f.Text != spec.PythonType {
			n.Args |= 1 << f.TextArg
		}
	}
	return n
}

var (
	errNoTurn      = errors.New("no site: planning its file took so long that this function had no turn")
	errNoKey       = errors.New("its end has no site, and the scope's key is read there")
	errNoTailJump  = errors.New("it does not end in a jump to another function")
	errThrowsAfter = errors.New("no exit site: what is called after the last cheap instruction may throw")
	ErrNoReturns   = errors.New("no return probe: the kernel makes a system call for it, which the job's seccomp filter forbids")
	errSameSite    = errors.New("its only exit site is its entry site")
)

// Reason says in one clause where the probe sits, or why it does not.
func (p *Probe) Reason() string {
	switch {
	case p.EntryErr != nil:
		return p.EntryErr.Error()
	case p.Function.Action == spec.ScopeBegin && p.ExitErr != nil:
		return errNoKey.Error() + ": " + p.ExitErr.Error()
	}
	return p.Entry.Reason
}

// Site is one planned place of a probe, for people.
type Site struct{ Kind, Offset, Cost, Reason string }

// Sites lists where a probe's programs sit, and why, or why not.
func (p *Probe) Sites() []Site {
	if p.EntryErr != nil {
		return []Site{{"entry", "", "none", p.EntryErr.Error()}}
	}
	at := func(offset uint64) string { return fmt.Sprintf("+%d", offset) }
	sites := []Site{{"entry", at(p.Entry.Offset), p.Entry.Cost.String(), p.Entry.Reason}}
	if p.Return {
		sites = append(sites, Site{"return", at(p.Entry.Offset), p.Entry.Cost.String(), p.Entry.Reason})
	}
	for _, e := range p.Exits {
		sites = append(sites, Site{"exit", at(e.Offset), e.Cost.String(), e.Reason})
	}
	switch {
	case p.ExitErr != nil && p.Function.End == spec.ExitSites:
		sites = append(sites, Site{"exit", "", "none", p.ExitErr.Error() + ": ended by the next entry"})
	case p.ExitErr != nil:
		sites = append(sites, Site{"return", "", "none", p.ExitErr.Error()})
	}
	return sites
}
