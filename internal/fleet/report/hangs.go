package report

import (
	"context"
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/fleet/evidence"
)

// Hang is a time at which agents found ranks of the job blocked; `ebpfprof fleet hang STORE`
// has the rest of it.
type Hang struct {
	AtNS       int64    `json:"ts_ns"`    // of the last agent's verdict
	SinceNS    int64    `json:"since_ns"` // of the last sign that the job went on
	Kind       string   `json:"kind"`
	Sentence   string   `json:"sentence"`
	Hosts      []string `json:"hosts"`
	StepsAfter bool     `json:"steps_after"` // it has gone on
}

// hangsBefore is how long before the compared windows a hang still counts: the time that is
// compared may be one in which nothing but waiting was seen.
const hangsBefore = time.Hour

// readHangs reads what agents found, the latest first.
func (r *Report) readHangs(ctx context.Context, db Source) error {
	r.Hangs = []Hang{}
	found, err := evidence.Incidents(ctx, db, r.Job, r.BeginNS-hangsBefore.Nanoseconds(), r.EndNS+hangsBefore.Nanoseconds())
	if err != nil {
		return err
	}
	for _, in := range found {
		r.Hangs = append(r.Hangs, Hang{AtNS: in.AtNS, SinceNS: in.SinceNS, Kind: in.Kind, Sentence: in.Sentence, Hosts: in.Hosts,
			StepsAfter: in.StepsAfter})
	}
	for i, h := range r.Hangs {
		if i == namedJobs {
			r.Notes = append(r.Notes, fmt.Sprintf("ranks were blocked %d times more: ebpfprof fleet hang", len(r.Hangs)-i))
			break
		}
		if i > 0 || h.StepsAfter {
			r.Notes = append(r.Notes, fmt.Sprintf("ranks were blocked from %s on: %s", clock(h.SinceNS), h.Sentence))
		}
	}
	return nil
}

// hanging begins the verdict on a job that has not gone on: nothing else matters to it.
func (r *Report) hanging() string {
	if len(r.Hangs) == 0 || r.Hangs[0].StepsAfter {
		return ""
	}
	h := &r.Hangs[0]
	return fmt.Sprintf("The job is blocked since %s: %s. Before that: ", clock(h.SinceNS), h.Sentence)
}
