package probes

import "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"

// tiers say which groups are in slices, and whose calls take stacks.
type tiers struct {
	demoted   map[string]bool // anchor groups that are in slices
	stackless map[string]bool // groups whose calls take no stacks any more
}

func newTiers() tiers {
	return tiers{demoted: map[string]bool{}, stackless: map[string]bool{}}
}

// tier is when a group's probes are in.
func (t *tiers) tier(group *spec.Group) spec.Tier {
	if t.demoted[group.Name] {
		return spec.Detail
	}
	return group.Tier
}

// usable lists a file's probes of one tier that can be attached.
func (t *tiers) usable(f *File, tier spec.Tier) []int {
	var probes []int
	for i := range f.plan.Probes {
		if p := &f.plan.Probes[i]; p.Usable() && t.tier(p.Group) == tier {
			probes = append(probes, i)
		}
	}
	return probes
}

// Stackless reports whether the calls of a group take no stacks any more.
func (t *tiers) Stackless(group string) bool { return t.stackless[group] }
