package agent

import (
	"maps"
	"time"
)

// A job whose canary has died is left alone for so long, and so many are remembered: jobs
// choose their names.
const (
	refusedFor  = 24 * time.Hour
	mostRefused = 1000
)

// refusedJob is why a job is left alone, and since when.
type refusedJob struct {
	why  string
	from time.Time
}

// refuse remembers that a job is left alone.
func (s *supervisor) refuse(j *supervised, why string) {
	j.refused = why
	if len(s.refused) >= mostRefused {
		maps.DeleteFunc(s.refused, func(_ string, r refusedJob) bool { return time.Since(r.from) >= refusedFor })
	}
	if len(s.refused) < mostRefused {
		s.refused[j.job.Name] = refusedJob{why, time.Now()}
	}
}

// whyRefused is why a job is left alone; "" is not so.
func (s *supervisor) whyRefused(name string) string {
	r, ok := s.refused[name]
	if !ok || time.Since(r.from) >= refusedFor {
		delete(s.refused, name)
		return ""
	}
	return r.why
}
