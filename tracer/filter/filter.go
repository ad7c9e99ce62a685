// Package filter says what of a job is recorded: --probe names what, --exclude what not.
package filter

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// Key is what a term of a filter is about.
type Key string

const (
	Group    Key = "group"    // of the catalog
	Layer    Key = "layer"    // of the rows: op, runtime, …
	Category Key = "category" // of the rows: launch, copy, …
	Symbol   Key = "symbol"   // a call's name, or that of its function, mangled or not
	Device   Key = "device"   // the number of an accelerator, by its rows
	Rank     Key = "rank"     // of a process
)

// Keys are all of them, in the order in which they are shown.
var Keys = []Key{Group, Layer, Category, Symbol, Device, Rank}

// ErrNoMatch is a term that nothing which could be recorded matches.
var ErrNoMatch = errors.New("matches nothing")

// Terms are the globs of each key.
type Terms map[Key][]string

// Filter is what --probe and --exclude came to. The zero Filter lets all pass.
type Filter struct {
	Probe   Terms // a row matches one glob of each key
	Exclude Terms // it matches none of any
}

// KeyNames lists the keys for a flag's help.
func KeyNames() string { return joined(Keys) }

// OfGroups lets pass what is of these groups; of all without any.
func OfGroups(names ...string) Filter {
	if len(names) == 0 {
		return Filter{}
	}
	return Filter{Probe: Terms{Group: names}}
}

// New reads what --probe and --exclude say. The error names the flag.
func New(probe, exclude string) (f Filter, err error) {
	if f.Probe, err = Parse(probe); err != nil {
		return f, fmt.Errorf("--probe: %w", err)
	}
	if f.Exclude, err = Parse(exclude); err != nil {
		return f, fmt.Errorf("--exclude: %w", err)
	}
	for _, glob := range f.Exclude[Group] {
		if !matchesAny([]string{glob}, IOGroup) && !slices.ContainsFunc(catalog.Groups(),
			func(g spec.Group) bool { return matchesAny([]string{glob}, g.Name) }) {
			return f, fmt.Errorf("--exclude: group %s %w: ebpfprof probes --groups lists them", glob, ErrNoMatch)
		}
	}
	return f, nil
}

// Parse reads KEY=GLOB[,GLOB…][,KEY=GLOB…]. A word in front of all keys is a group's.
func Parse(text string) (Terms, error) {
	terms := Terms{}
	key := Group
	for item := range strings.SplitSeq(text, ",") {
		glob := strings.TrimSpace(item)
		if name, rest, ok := strings.Cut(glob, "="); ok {
			if key = Key(strings.TrimSpace(name)); !slices.Contains(Keys, key) {
				return nil, fmt.Errorf("%q is nothing to filter by: choose from %s", name, joined(Keys))
			}
			glob = strings.TrimSpace(rest)
		}
		if glob == "" {
			if strings.TrimSpace(text) == "" {
				return nil, nil
			}
			return nil, fmt.Errorf("%q has an empty pattern: write KEY=GLOB[,…], such as layer=op or symbol=aten::*mm", text)
		}
		if _, err := path.Match(glob, ""); err != nil {
			return nil, fmt.Errorf("%q is no pattern: a bracket is not closed", glob)
		}
		terms[key] = append(terms[key], glob)
	}
	return terms, terms.check()
}

func joined[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}

// check refuses layers and categories that no function has. Of groups that is for who
// chooses among them.
func (t Terms) check() error {
	for _, key := range []Key{Layer, Category} {
		var there []string
		for _, g := range catalog.Groups() {
			for i := range g.Functions {
				f := &g.Functions[i]
				there = append(there, map[Key]string{Layer: f.Layer, Category: f.Category}[key])
			}
		}
		if key == Layer {
			there = append(there, IOGroup)
		}
		slices.Sort(there)
		there = slices.DeleteFunc(slices.Compact(there), func(s string) bool { return s == "" })
		for _, glob := range t[key] {
			if !slices.ContainsFunc(there, func(s string) bool { return matchesAny([]string{glob}, s) }) {
				return fmt.Errorf("%s=%s %w: choose from %s", key, glob, ErrNoMatch, strings.Join(there, ", "))
			}
		}
	}
	return nil
}

func matchesAny(globs []string, names ...string) bool {
	for _, glob := range globs {
		for _, name := range names {
			// A slash is a character like others here, as in operator/.
			if ok, _ := path.Match(strings.ReplaceAll(glob, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00")); ok {
				return true
			}
		}
	}
	return false
}

// passes reports whether what has these names for a key is recorded.
func (f *Filter) passes(key Key, names ...string) bool {
	wanted := f.Probe[key]
	return (len(wanted) == 0 || matchesAny(wanted, names...)) && !matchesAny(f.Exclude[key], names...)
}

// Groups is which of these groups are probed: not those that are excluded, and of the
// others those with a function that is to be recorded, or that such a one needs.
func (f *Filter) Groups(groups []spec.Group) []spec.Group {
	needed := map[string]bool{}
	for changed := true; changed; {
		changed = false
		for _, g := range groups {
			if !needed[g.Name] && !f.hasOwn(&g) || matchesAny(f.Exclude[Group], g.Name) {
				continue
			}
			for _, name := range append(g.With, g.Name) {
				changed = changed || !needed[name]
				needed[name] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(groups), func(g spec.Group) bool {
		return !needed[g.Name] || matchesAny(f.Exclude[Group], g.Name)
	})
}

func (f *Filter) hasOwn(g *spec.Group) bool {
	if len(f.Probe[Layer])+len(f.Probe[Category])+len(f.Exclude[Layer])+len(f.Exclude[Category]) == 0 {
		return true
	}
	return slices.ContainsFunc(g.Functions, func(fn spec.Function) bool { return !serves(&fn) && f.function(&fn) })
}

// serves reports whether other rows lack names, devices or their operator without a
// function's calls: then it is probed wherever its group is.
func serves(fn *spec.Function) bool {
	switch fn.Action {
	case spec.Sequence, spec.RunsPython:
		return true
	}
	if fn.Python {
		return true
	}
	switch fn.Effect {
	case spec.NoEffect, spec.WaitsStream, spec.WaitsEvent, spec.WaitsContext, spec.WaitsDevice,
		spec.QueriesStream, spec.QueriesEvent, spec.TellsElapsed, spec.StreamWaits, spec.LaunchesGraph,
		spec.RunsUntilReturn, spec.RunsBeyondReturn, spec.ExecutesLists,
		spec.QueuesWork, spec.RunsWork, spec.FinishesWork, spec.AwaitsWork, spec.CopiesWork, spec.FailsWork:
		return false
	}
	return true
}

func (f *Filter) function(fn *spec.Function) bool {
	return f.passes(Layer, fn.Layer) && f.passes(Category, fn.Category)
}

// Call reports whether a function's calls are recorded, by what it is called: the name
// that its rows have, its symbol, and that as people read it. A scope's begin and end
// stay together: neither is excluded by its symbol. What a user asks for by its name is recorded whatever the filter says.
func (f *Filter) Call(fn *spec.Function, names ...string) bool {
	if fn.Asked != nil || serves(fn) {
		return true
	}
	scope := fn.Action == spec.ScopeBegin || fn.Action == spec.ScopeEnd
	return f.function(fn) && (scope && len(f.Probe[Symbol]) == 0 || f.passes(Symbol, names...))
}

// IOGroup is what filters call the reads and writes of a job, which are measured at system
// calls and are in no group of the catalog; their rows are of the layer of that name.
const IOGroup = "io"

// IO reports whether reads and writes are measured. They have no category and no symbol:
// who asks for one does not ask for them.
func (f *Filter) IO() bool {
	return f.passes(Group, IOGroup) && f.passes(Layer, IOGroup) && len(f.Probe[Category])+len(f.Probe[Symbol]) == 0
}

// BySymbol reports whether Call depends on names.
func (f *Filter) BySymbol() bool { return len(f.Probe[Symbol])+len(f.Exclude[Symbol]) > 0 }

// ByRow reports whether Number leaves anything out.
func (f *Filter) ByRow() bool {
	return len(f.Probe[Device])+len(f.Exclude[Device])+len(f.Probe[Rank])+len(f.Exclude[Rank]) > 0
}

// Number reports whether rows of a device or rank are recorded. Those that have none are.
func (f *Filter) Number(key Key, n *int32) bool {
	return n == nil || f.passes(key, fmt.Sprint(*n))
}

// String writes terms as Parse reads them.
func (t Terms) String() string {
	var items []string
	for _, key := range Keys {
		for i, glob := range t[key] {
			if i == 0 && key != Group {
				glob = string(key) + "=" + glob
			}
			items = append(items, glob)
		}
	}
	return strings.Join(items, ",")
}
