package report

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/fleet/evidence"
)

// leastHang is from when on ranks that waited in a collective when the recording ended are
// told of, in seconds: what a recording happened to end in is no hang.
const leastHang = 1.9

// hangs asks what `ebpfprof fleet hang` does: also of a job that hung before the recording
// began, of which there is nothing else to tell.
func (b *builder) hangs() error {
	if b.imported {
		return nil
	}
	waits, err := evidence.Analyse(b.ctx, b.db)
	if err != nil {
		return err
	}
	if len(waits.Sentences(leastHang)) > 0 {
		b.report.Hang = waits
	}
	return nil
}

// hanging begins the verdict: nothing else matters to a job that does not go on.
func (r *Report) hanging() string {
	if r.Hang == nil {
		return ""
	}
	return "The job hung when the recording ended: " + strings.Join(r.Hang.Sentences(leastHang), "; ") + "."
}

func (r *Report) hangSection() section {
	s := section{title: "What waits"}
	if r.Hang != nil {
		for _, sentence := range r.Hang.Sentences(leastHang) {
			s.note("%s", sentence)
		}
		s.note("who stands where, with stacks: ebpfprof fleet hang %s", r.Dataset)
	}
	return s
}
