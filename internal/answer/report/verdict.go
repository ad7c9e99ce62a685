package report

import (
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/analysis"
)

// contendedPercent is from when on the report begins with the CPUs that the training
// thread did not have: every other time in it is longer for that.
const contendedPercent = 10

// conclude writes the verdict: what samples explain, else what spans show.
func (b *builder) conclude() {
	r := b.report
	if v := b.explained; v != nil && r.Hang == nil {
		r.Verdict, r.first, r.second = v.Sentence, v.First, v.Second
		return
	}
	r.Verdict = b.verdict()
	r.first = r.Verdict
}

// verdict is one sentence: what limits the job, and by how much; before that, what ended it or holds it up.
func (b *builder) verdict() string {
	if text := b.report.hanging(); text != "" {
		if b.report.Rows.Total > 0 || b.samples > 0 {
			text += " Before that: " + b.ran()
		}
		return text
	}
	return b.ran()
}

// ran is the sentence about a job that went on.
func (b *builder) ran() string {
	text := b.slowest()
	if o := b.report.ranOut(); o != nil {
		sentence := o.Sentence()
		text = fmt.Sprintf("%s%s. Before that: %s%s", strings.ToUpper(sentence[:1]), sentence[1:], strings.ToLower(text[:1]), text[1:])
	}
	return text
}

// slowest is what of the machine and the job costs it most.
func (b *builder) slowest() string {
	r := b.report
	if r.Rows.Total == 0 && b.samples == 0 && b.stood != nil && len(b.stood.Standing) > 0 {
		p := &b.stood.Standing[0]
		switch locks := p.Locks(); {
		case p.Stopped != "":
			return fmt.Sprintf("Nothing moves: process %d is %s. Continue it: kill -CONT %d.", p.PID, p.Stopped, p.PID)
		case locks != "":
			return "Nothing moves: " + locks + "."
		case p.Place != "":
			return fmt.Sprintf("Nothing moved while it was recorded: the main thread of process %d stands at %s.", p.PID, p.Place)
		}
		return fmt.Sprintf("Nothing moved while it was recorded: process %d stood still.", p.PID)
	}
	if r.Rows.Total == 0 && b.samples == 0 {
		return "Nothing was recorded: there is no span and no sample."
	}
	text := b.limits()
	if c := r.Contention; c != nil && c.Percent >= max(contendedPercent, r.mostHeadroom()) {
		text = fmt.Sprintf("For %.0f %% of the steps' time the %s was ready to run and had no CPU (%s); after that: %s%s", c.Percent, r.worker,
			c.who, strings.ToLower(text[:1]), text[1:])
	}
	return text
}

// ranOut is the last time that an allocator, or the kernel, had no memory left, nil if
// there was none. That a driver had none its caller may have known how to help.
func (r *Report) ranOut() *analysis.Shortage {
	for i := range r.OutOfMemory {
		if r.OutOfMemory[i].Level != "driver" {
			return &r.OutOfMemory[i]
		}
	}
	return nil
}

// mostHeadroom is the first finding's, in percent.
func (r *Report) mostHeadroom() float64 {
	if len(r.Findings) == 0 || r.Findings[0].HeadroomPercent == nil {
		return 0
	}
	return *r.Findings[0].HeadroomPercent
}

// limits is what in the job limits it.
func (b *builder) limits() string {
	r := b.report
	if len(r.Findings) > 0 && r.Findings[0].HeadroomPercent != nil && r.Findings[0].Severity != findings.Info {
		f := r.Findings[0]
		at := f.Name
		if place := placeOf(f); place != "" {
			at = place
		}
		return fmt.Sprintf("%sMending %s at %s would shorten %s by about %.0f %%: %s.", b.ofFew(f), f.Accusation(), at, stretchOf(f),
			*f.HeadroomPercent,
			strings.TrimSuffix(f.Advice, "."))
	}
	if d := r.deviceAtWork(); d != nil && d.TotalMS > 0 {
		return b.deviceVerdict(d)
	}
	return b.hostVerdict()
}

// stretchOf is what a headroom is of.
func stretchOf(f findings.Finding) string {
	switch {
	case f.FromSteps == nil:
		return "a step"
	case *f.FromSteps == 0:
		return "the recording"
	}
	return fmt.Sprintf("a step (%s)", fromSteps(*f.FromSteps))
}

// ofFew is what comes before a finding from few steps: a device that hardly works is known without any statistics.
func (b *builder) ofFew(f findings.Finding) string {
	if d := b.report.deviceAtWork(); f.FromSteps != nil && d != nil && d.TotalMS > 0 && d.IdleMS >= 0.3*d.TotalMS {
		return fmt.Sprintf("The device is idle %.0f %% of %s. ", 100*d.IdleMS/d.TotalMS, b.report.ofDevice(d))
	}
	return ""
}

func (b *builder) deviceVerdict(d *Device) string {
	share := func(v float64) float64 { return 100 * v / d.TotalMS }
	device, of := "The device", b.report.ofDevice(d)
	if d.Count > 1 {
		device = fmt.Sprintf("Each of the %d devices", d.Count)
	}
	switch {
	case share(d.IdleMS) >= 30:
		why := "the host does not hand it work fast enough"
		if n := len(b.report.Kernels); n > 0 {
			var calls int64
			var took float64
			for _, k := range b.report.Kernels {
				calls += k.Calls
				took += k.DeviceMS
			}
			why = fmt.Sprintf("its %d pieces of work last %.1f µs on average, and the host does not hand them over fast enough", calls,
				1e3*took/float64(max(calls, 1)))
		}
		return fmt.Sprintf("%s is idle %.0f %% of %s: %s.", device, share(d.IdleMS), of, why)
	case share(d.ExposedCommunicationMS) >= 15:
		return fmt.Sprintf("%s spends %.0f %% of %s in communication that no computation hides.", device, share(d.ExposedCommunicationMS), of)
	case share(d.ExposedMemcpyMS) >= 10:
		return fmt.Sprintf("%s spends %.0f %% of %s in copies that nothing hides.", device, share(d.ExposedMemcpyMS), of)
	}
	top := ""
	if len(b.report.Kernels) > 0 {
		k := b.report.Kernels[0]
		top = fmt.Sprintf("; the largest kernel, %s, has %.0f %% of its work", shorten(k.Name, 60), k.Percent)
	}
	return fmt.Sprintf("%s computes %.0f %% of %s%s.", device, share(d.ComputationMS), of, top)
}

func (b *builder) hostVerdict() string {
	r := b.report
	var parts []string
	if r.Steps != nil {
		parts = append(parts, fmt.Sprintf("a step takes %.2f ms", r.Steps.MeanMS))
	}
	if len(r.Phases) > 0 {
		of := "the " + r.worker + "'s time"
		if r.Steps != nil {
			of = "it"
		}
		parts = append(parts, fmt.Sprintf("%.0f %% of %s is %s", r.Phases[0].Percent, of, r.Phases[0].Phase))
	}
	if len(r.Operators) > 0 {
		total := 0.0
		for _, o := range r.Operators {
			total += o.SelfMS
		}
		o := r.Operators[0]
		parts = append(parts, fmt.Sprintf("the largest operator is %s (%.0f %% of all operators' own time)", o.Name, 100*o.SelfMS/max(total,
			1e-9)))
	} else if len(r.Lines) > 0 {
		l := r.Lines[0]
		parts = append(parts, fmt.Sprintf("the hottest line is %s:%d", l.File, l.Line))
	}
	if len(parts) == 0 {
		return fmt.Sprintf("%.1f s were recorded, and nothing in it says what the job does.", r.WindowMS/1e3)
	}
	text := strings.Join(parts, ", ")
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// placeOf is a finding's file and line, "" where no stack shows them.
func placeOf(f findings.Finding) string {
	if f.File == nil || *f.File == "" {
		return ""
	}
	if f.Line == nil {
		return *f.File
	}
	return fmt.Sprintf("%s:%d", *f.File, *f.Line)
}

// shorten cuts the middle out of a long name: both ends tell kernels apart.
func shorten(name string, width int) string {
	runes := []rune(name)
	if len(runes) <= width || width < 8 {
		return name
	}
	head := (width - 1) * 2 / 3
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
}
