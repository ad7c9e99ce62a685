package pattern

// Compact puts the functions of each worker that took less than a share of the
// observed time together: what is left adds up to the same.
func Compact(patterns []Pattern, least float64) (kept []Pattern) {
	type id struct {
		pid   int32
		begin int64
	}
	rest := map[id]int{}
	for _, p := range patterns {
		if p.Basis != Sampled || p.Class == Host || p.Beta >= least {
			kept = append(kept, p)
			continue
		}
		k := id{p.PID, p.BeginNS}
		i, ok := rest[k]
		if !ok {
			f := function{class: Other, name: otherFunctions}
			f.hash()
			sum := p
			sum.Function, sum.Class, sum.Name, sum.Stack, sum.File, sum.Line, sum.Wait = f.key, f.class, f.name, "", "", 0, ""
			rest[k] = len(kept)
			kept = append(kept, sum)
			continue
		}
		o := &kept[i]
		all := o.Beta + p.Beta
		if all > 0 {
			mean := func(a, b float64) float64 { return (a*o.Beta + b*p.Beta) / all }
			o.Mu, o.Sigma, o.Preempted, o.Stopped = mean(o.Mu, p.Mu), mean(o.Sigma, p.Sigma), mean(o.Preempted, p.Preempted),
				mean(o.Stopped, p.Stopped)
		}
		o.BetaLo, o.BetaHi = o.BetaLo+p.BetaLo, min(1, o.BetaHi+p.BetaHi)
		o.Beta = all
		o.MeanNS = (o.MeanNS*o.Count + p.MeanNS*p.Count) / max(1, o.Count+p.Count)
		o.Count += p.Count
		o.P99NS, o.LongestNS = max(o.P99NS, p.P99NS), max(o.LongestNS, p.LongestNS)
	}
	return kept
}
