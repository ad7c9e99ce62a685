package findings

import (
	"cmp"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
)

// claim is what a rule accuses and, where only bounds of device times are known, the same with
// the most time that work on devices can have taken; nil where it is not so then.
type claim struct {
	evidence.Candidate
	most *evidence.Candidate
}

// accusedBy runs a rule, at both ends of the bounds if device times are only bounded. What it
// accuses at one end alone is included: judge returns why it is not claimed. unknown is what
// the rule could not determine.
func accusedBy(r *evidence.Recording, rule evidence.Rule) (all []claim, unknown []string, err error) {
	found, err := rule.Look(r)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range found {
		if c.Unknown != "" {
			unknown = append(unknown, c.Unknown)
			continue
		}
		c.Rule = cmp.Or(c.Rule, rule.Name)
		all = append(all, claim{Candidate: c})
	}
	if r.Most == nil {
		return all, unknown, nil
	}
	others, err := rule.Look(r.Most)
	if err != nil {
		return nil, nil, err
	}
	others = slices.DeleteFunc(others, func(c evidence.Candidate) bool { return c.Unknown != "" })
	for k := range others {
		others[k].Rule = cmp.Or(others[k].Rule, rule.Name)
	}
	for i := range all {
		for k := range others {
			if alike(all[i].Candidate, others[k]) {
				all[i].most = &others[k]
			}
		}
	}
	for _, c := range others {
		if !accuses(all, c) {
			all = append(all, claim{Candidate: c})
		}
	}
	return all, unknown, nil
}

// alike says whether both accuse the same. Which name has the most of the time may differ with
// the times; where the evidence names the accused, that distinguishes findings.
func alike(a, b evidence.Candidate) bool {
	named := a.Name == b.Name || a.Evidence == b.Evidence && a.Together == nil
	return a.Rule == b.Rule && a.Place == b.Place && named && (a.Replace == nil) == (b.Replace == nil)
}

func accuses(all []claim, c evidence.Candidate) bool {
	for _, a := range all {
		if alike(a.Candidate, c) {
			return true
		}
	}
	return false
}

// widened is the headroom with what it is at the other end: the mean is the lesser, and the
// interval holds both. told has the two means.
func widened(r *evidence.Recording, h evidence.Headroom, most evidence.Candidate, told func(low, high float64)) evidence.Headroom {
	other, ok := evidence.HeadroomOf(r.Most.Differences(most, r.Most.Probes.HitNS))
	if !ok {
		return h
	}
	other = r.Most.Bounded(other, most)
	told(min(h.NS, other.NS), max(h.NS, other.NS))
	return evidence.Headroom{
		NS: min(h.NS, other.NS), LowNS: min(h.LowNS, other.LowNS), HighNS: max(h.HighNS, other.HighNS),
		FromSteps: h.FromSteps,
	}
}
