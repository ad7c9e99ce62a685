package tracer

import "github.com/ebpfprof/ebpfprof/bpf"

// tellUse says how much of the limits is used, for doctor and whoever else asks while
// the recording goes on (internal/mapfill).
func tellUse(s *Session) error {
	places := s.probes.Places()
	used := map[string]int{
		"processes": s.job.Processes(),
		"stacks":    s.stats.stackRows(),
		"files":     places.Files,
		"probes":    places.Places,
	}
	if s.walks != nil {
		used["unwind-mib"] = (s.walks.Used().Bytes + 1<<20 - 1) >> 20
	}
	uses := make([]bpf.LimitUse, len(Limits))
	for i, l := range Limits {
		uses[i] = bpf.NewLimitUse(l.Name, used[l.Name], s.options.limit(l.Name))
	}
	return s.kernel.LimitUse.Tell(uses)
}
