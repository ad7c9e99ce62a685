package findings

import "github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"

// claim is what a rule accuses and, where only bounds of device times are known, the same with
// the most time that work on devices can have taken; nil where it is not so then.
type claim struct {
	evidence.Candidate
	most *evidence.Candidate
}

// accusedBy asks a rule at both ends of the bounds, where bounds are all there is. What is so at
// one end alone is accused, too: judge says why nothing is claimed.
func accusedBy(r *evidence.Recording, rule evidence.Rule) (all []claim, err error) {
	for _, c := range rule(r) {
		all = append(all, claim{Candidate: c})
	}
	if r.Failed != nil || r.Most == nil {
		return all, r.Failed
	}
	r.Most.Untold, r.Most.Failed = nil, nil
	others := rule(r.Most)
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
	return all, r.Most.Failed
}

// alike says whether both accuse the same. Which name has the most of the time may differ with
// the times; where the evidence names what is accused, that is told apart by it.
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
		LowConfidence: h.LowConfidence || other.LowConfidence,
	}
}
