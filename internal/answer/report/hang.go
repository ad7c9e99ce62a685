package report

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
	"github.com/ebpfprof/ebpfprof/internal/fleet/evidence"
)

// leastHang is from when on ranks that waited in a collective when the recording ended are
// told of, in seconds: what a recording happened to end in is no hang.
const leastHang = 1.9

// hangSteps is how many mean steps a collective must have waited for as well: ranks of long steps, or on a machine that
// others keep busy, wait for each other longer.
const hangSteps = 5

// leastWait is from when on a wait is a hang, in seconds.
func (r *Report) leastWait() float64 {
	if r.Steps == nil {
		return leastHang
	}
	return max(leastHang, hangSteps*r.Steps.MeanMS/1e3)
}

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
	if len(waits.Sentences(b.report.leastWait())) > 0 {
		b.report.Hang = waits
	}
	b.stood = waits
	return nil
}

// stands keeps where the threads stood if nothing moves.
func (b *builder) stands() {
	all := b.report.Explanations
	if b.stood == nil || len(b.stood.Standing) == 0 || b.explained.Idles() {
		return
	}
	if b.report.Hang == nil && b.moved() && (len(all) == 0 || all[0].Kind != "nothing_moves") {
		return // a main thread that waits for others while they work
	}
	b.report.Standing = b.stood.Standing
}

// moved reports whether anything did. A wait that is looked at again and again has samples, too.
func (b *builder) moved() bool {
	var samples int64
	err := b.db.Row(b.ctx, "SELECT count(*) FROM sample WHERE state = 'on_cpu'", nil, &samples)
	return err != nil || b.spans+samples > 0
}

// standingSection has the stacks of who stands where.
func (r *Report) standingSection() section {
	s := section{title: standingTitle}
	if len(r.Standing) == 0 {
		return s
	}
	var text strings.Builder
	_ = (&hang.Report{Standing: r.Standing}).WriteStanding(&text)
	for line := range strings.Lines(text.String()) {
		s.notes = append(s.notes, strings.TrimRight(line, "\n"))
	}
	return s
}

const standingTitle = "Who stands where"

// hanging begins the verdict: nothing else matters to a job that does not go on.
func (r *Report) hanging() string {
	if r.Hang == nil {
		return ""
	}
	return "The job hung when the recording ended: " + strings.Join(r.Hang.Sentences(r.leastWait()), "; ") + "."
}

func (r *Report) hangSection() section {
	s := section{title: "What waits"}
	if r.Hang != nil {
		for _, sentence := range r.Hang.Sentences(r.leastWait()) {
			s.note("%s", sentence)
		}
		s.note("who stands where, with stacks: ebpfprof fleet hang %s", r.Dataset)
	}
	return s
}
