package plan

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// A runtime that is newer than the catalog may have a function in a layout that
// the catalog does not know, under the function's name and a suffix. A job that
// was compiled for it calls that one, unseen: then at least a warning says so.

// variantSuffix are the suffixes that runtimes give to layouts and to the
// callers' kind of default stream.
var variantSuffix = regexp.MustCompile(`^(_v[0-9]+)?(_ptsz|_ptds|_spt)?$`)

// unknownVariants lists those of a file's exports that are a variant of a
// catalogued function, and are not in the catalog.
func unknownVariants(exports []string, functions []*spec.Function) (unknown []string) {
	known, labels := map[string]bool{}, map[string]bool{}
	for _, f := range functions {
		known[f.Symbol], labels[f.Label] = true, true
	}
	for _, name := range exports {
		if known[name] {
			continue
		}
		for at := strings.LastIndexByte(name, '_'); at > 0; at = strings.LastIndexByte(name[:at], '_') {
			if labels[name[:at]] && variantSuffix.MatchString(name[at:]) {
				unknown = append(unknown, name)
				break
			}
		}
	}
	slices.Sort(unknown)
	return slices.Compact(unknown)
}

// runtimeFunctions are the groups' functions that a file may have variants of.
func runtimeFunctions(path string, e *elf.File, groups []spec.Group) (functions []*spec.Function) {
	base := filepath.Base(path)
	for g := range groups {
		for i := range groups[g].Functions {
			if f := &groups[g].Functions[i]; f.Exact && f.Runtime != "" && f.Lives(base, e) {
				functions = append(functions, f)
			}
		}
	}
	return functions
}

// UnknownTo lists the functions of a runtime's file that are newer than the catalog; none
// where it has no function of the runtime at all, in spite of its name.
func (p *Plan) UnknownTo(groups []spec.Group) (unknown []string, none bool, err error) {
	err = elf.Guard(func() {
		functions := runtimeFunctions(p.Path, p.ELF, groups)
		prefixes := make([]string, len(functions))
		for i, f := range functions {
			prefixes[i] = f.Label
		}
		if len(prefixes) == 0 {
			return
		}
		var exports []string
		for _, symbol := range p.ELF.ExportedFunctions(prefixes) {
			exports = append(exports, symbol.Name)
		}
		unknown = unknownVariants(exports, functions)
		none = !slices.ContainsFunc(functions, func(f *spec.Function) bool { return slices.Contains(exports, f.Symbol) })
	})
	return unknown, none, err
}
