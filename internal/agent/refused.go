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
	// mostRefusedOfUser are one user's.
	mostRefusedOfUser = 100
)

// refusedJob is why a job is left alone, and since when.
type refusedJob struct {
	why  string
	from time.Time
	user uint32
}

// refuse remembers that a job is left alone. Of one user so many are remembered at the most: then
// its oldest is forgotten, and nobody else's.
func (s *supervisor) refuse(j *supervised, why string) {
	j.refused = why
	maps.DeleteFunc(s.refused, func(_ string, r refusedJob) bool { return time.Since(r.from) >= refusedFor })
	of, oldest := 0, ""
	for key, r := range s.refused {
		if r.user != j.job.User {
			continue
		}
		if of++; oldest == "" || r.from.Before(s.refused[oldest].from) {
			oldest = key
		}
	}
	if of >= mostRefusedOfUser {
		delete(s.refused, oldest)
	}
	if len(s.refused) < mostRefused {
		s.refused[j.job.Identity()] = refusedJob{why, time.Now(), j.job.User}
	}
}

// whyRefused is why the job of an identity is left alone; "" is not so.
func (s *supervisor) whyRefused(identity string) string {
	r, ok := s.refused[identity]
	if !ok || time.Since(r.from) >= refusedFor {
		delete(s.refused, identity)
		return ""
	}
	return r.why
}
