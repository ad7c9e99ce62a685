package findings

// claim is what a rule accuses and, where only bounds of device times are known, the same with
// the most time that work on devices can have taken; nil where it is not so then.
type claim struct {
	candidate
	most *candidate
}

// accusedBy asks a rule at both ends of the bounds, where bounds are all there is. What is so at
// one end alone is accused, too: judge says why nothing is claimed.
func (r *recording) accusedBy(rule func(*recording) []candidate) (all []claim, err error) {
	for _, c := range rule(r) {
		all = append(all, claim{candidate: c})
	}
	if r.failed != nil || r.most == nil {
		return all, r.failed
	}
	r.most.untold, r.most.failed = nil, nil
	others := rule(r.most)
	for i := range all {
		for k := range others {
			if alike(all[i].candidate, others[k]) {
				all[i].most = &others[k]
			}
		}
	}
	for _, c := range others {
		if !accuses(all, c) {
			all = append(all, claim{candidate: c})
		}
	}
	return all, r.most.failed
}

// alike says whether both accuse the same. Which name has the most of the time may differ with
// the times; where the evidence names what is accused, that is told apart by it.
func alike(a, b candidate) bool {
	named := a.name == b.name || a.evidence == b.evidence && a.together == nil
	return a.rule == b.rule && a.place == b.place && named && (a.replace == nil) == (b.replace == nil)
}

func accuses(all []claim, c candidate) bool {
	for _, a := range all {
		if alike(a.candidate, c) {
			return true
		}
	}
	return false
}

// widened is the headroom with what it is at the other end: the mean is the lesser, and the
// interval holds both. told has the two means.
func (r *recording) widened(h Headroom, most candidate, told func(low, high float64)) Headroom {
	other, ok := headroomOf(r.most.differences(most, r.most.probes.HitNS))
	if !ok {
		return h
	}
	other = r.most.bounded(other, most)
	told(min(h.NS, other.NS), max(h.NS, other.NS))
	return Headroom{min(h.NS, other.NS), min(h.LowNS, other.LowNS), max(h.HighNS, other.HighNS), h.LowConfidence || other.LowConfidence}
}
