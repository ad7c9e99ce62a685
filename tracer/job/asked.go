package job

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
)

// What a user asked for beside the catalog may be in no file: then a warning says so, with the nearest names.

// asked is what was asked for and has not been found yet.
type asked struct {
	missing []*wanted
	files   map[string]bool // base names of what is mapped
}

type wanted struct {
	function *spec.Function
	in       string // a file of the name, which does not have it
	taken    bool
	near     []string
}

// mostFiles base names are kept, to say which are like the one that was asked for.
const mostFiles = 4096

func newAsked(groups []spec.Group) asked {
	a := asked{files: map[string]bool{}}
	for g := range groups {
		for f := range groups[g].Functions {
			if function := &groups[g].Functions[f]; function.Asked != nil && a.find(function.Asked.Text) == nil {
				a.missing = append(a.missing, &wanted{function: function})
			}
		}
	}
	return a
}

func (a *asked) find(text string) *wanted {
	for _, w := range a.missing {
		if w.function.Asked.Text == text {
			return w
		}
	}
	return nil
}

// maps notes a file that a process maps.
func (a *asked) mapped(path string) {
	if len(a.missing) > 0 && len(a.files) < mostFiles {
		a.files[filepath.Base(path)] = true
	}
}

// planned notes what was found in a file, and what was not.
func (a *asked) planned(p *plan.Plan) {
	if len(a.missing) == 0 {
		return
	}
	for i := range p.Probes {
		if found := p.Probes[i].Function.Asked; found != nil {
			a.missing = slices.DeleteFunc(a.missing, func(w *wanted) bool { return w.function.Asked.Text == found.Text })
		}
	}
	for _, m := range p.Missing {
		if w := a.find(m.Function.Asked.Text); w != nil {
			w.in, w.taken = filepath.Base(p.Path), m.Taken
			w.near = append(w.near, m.Near...)
		}
	}
}

// Unfound are sentences on what was asked for and is in no file that a process maps, one each.
func (a *asked) Unfound() (said []string) {
	for _, w := range a.missing {
		switch asked := w.function.Asked; {
		case w.taken:
			said = append(said, fmt.Sprintf("%s in %s is in the catalog of probes already: its calls are recorded there, without arguments",
				asked.Symbol, w.in))
		case asked.Symbol == "":
			said = append(said, fmt.Sprintf("no file of the job has the USDT probe %s%s", asked.Note, nearestOf(w.near)))
		case w.in != "":
			said = append(said, fmt.Sprintf("%s has no function %s%s", w.in, asked.Symbol, nearestOf(w.near)))
		default:
			said = append(said, fmt.Sprintf("the job maps no file %s, in which %s was to be probed%s", asked.File, asked.Symbol,
				nearestOf(plan.Nearest(asked.File, slices.Collect(maps.Keys(a.files))))))
		}
	}
	return said
}

func nearestOf(names []string) string {
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return ""
	}
	return "; the nearest names: " + strings.Join(names[:min(len(names), 3)], ", ")
}

// WarnUnfound puts them into the dataset.
func (j *Job) WarnUnfound() {
	for _, said := range j.Unfound() {
		j.warnOf("attach", "asked", 1, "%s", said)
	}
}
