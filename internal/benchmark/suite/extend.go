package suite

import (
	"fmt"
	"maps"
	"slices"
)

// resolved is a benchmark with what those that it extends say.
func (s *Suite) resolved(b Benchmark) (Benchmark, error) {
	seen := []string{b.Name}
	for b.Extends != "" {
		i := slices.IndexFunc(s.Benchmarks, func(o Benchmark) bool { return o.Name == b.Extends })
		if i < 0 {
			return b, fmt.Errorf("benchmark %s extends %s, which is not there", b.Name, b.Extends)
		}
		if slices.Contains(seen, b.Extends) {
			return b, fmt.Errorf("benchmark %s extends itself through %v", b.Name, seen[1:])
		}
		seen = append(seen, b.Extends)
		b = b.over(s.Benchmarks[i])
	}
	return b, nil
}

// over fills in what b does not say. Maps are joined, b's entries before those of the base; lists are replaced.
func (b Benchmark) over(base Benchmark) Benchmark {
	b.Extends = base.Extends
	b.Command = either(b.Command, base.Command)
	b.Setup, b.Build, b.Cleanup = either(b.Setup, base.Setup), either(b.Build, base.Build), either(b.Cleanup, base.Cleanup)
	b.ValidSystems, b.ValidEnvirons = either(b.ValidSystems, base.ValidSystems), either(b.ValidEnvirons, base.ValidEnvirons)
	b.Parameters, b.Environment, b.Variables = joined(b.Parameters, base.Parameters), joined(b.Environment, base.Environment),
		joined(b.Variables, base.Variables)
	b.Sanity = b.Sanity.over(base.Sanity)
	for _, of := range []struct{ own, base *string }{{&b.Directory, &base.Directory}, {&b.Batch, &base.Batch},
		{&b.StepsPerEpoch, &base.StepsPerEpoch}, {&b.Loss, &base.Loss}} {
		if *of.own == "" {
			*of.own = *of.base
		}
	}
	if b.TimeLimit == 0 {
		b.TimeLimit = base.TimeLimit
	}
	references := map[string]map[string]Reference{}
	for _, all := range []map[string]map[string]Reference{base.References, b.References} {
		for where, some := range all {
			references[where] = joined(some, references[where])
		}
	}
	b.References = references
	return b
}

func (s Sanity) over(base Sanity) Sanity {
	s.Find, s.Absent = either(s.Find, base.Find), either(s.Absent, base.Absent)
	if s.ExitCode == nil {
		s.ExitCode = base.ExitCode
	}
	if s.XFail == "" {
		s.XFail = base.XFail
	}
	return s
}

func either[S ~[]E, E any](own, base S) S {
	if own != nil {
		return own
	}
	return base
}

func joined[M ~map[K]V, K comparable, V any](own, base M) M {
	all := M{}
	maps.Copy(all, base)
	maps.Copy(all, own)
	return all
}
