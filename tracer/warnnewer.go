package tracer

import (
	"fmt"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/plan"
)

// warnNewer says which functions of a runtime are newer than the catalog, and
// that a file with a runtime's name has none of the runtime's functions.
func (s *Session) warnNewer(plan *plan.Plan) {
	unknown, none, err := plan.UnknownTo(s.chosen.groups)
	if err != nil || none {
		detail := "named as a runtime's library, but exports none of its functions: it is not whole, or something else"
		if err != nil {
			detail = err.Error()
		}
		s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "library", Source: plan.Path, Count: 1, Detail: detail})
		return
	}
	if len(unknown) == 0 {
		return
	}
	s.warn(Warning{
		TSNS: time.Now().UnixNano(), Kind: "library", Source: plan.Path, Count: int64(len(unknown)),
		Detail: fmt.Sprintf("variants of functions that are newer than this tracer: calls of them are not seen: %s", strings.Join(unknown, ", ")),
	})
}
