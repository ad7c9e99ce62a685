package report

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/views"
)

// Profiled is the part of the recording that merged traces cover. All figures of devices are of this part, in which the
// job was slower.
type Profiled struct {
	Traces     int64   `json:"traces"`
	MS         float64 `json:"ms"`
	RecordedMS float64 `json:"recorded_ms"`
	DeviceRows int64   `json:"device_rows"`
	Launched   int64   `json:"launched"` // of them, those whose launch was recorded
	// Launches whose bounds were compared with the time that they took, and how many of these hold.
	BoundsChecked int64 `json:"bounds_checked"`
	BoundsHeld    int64 `json:"bounds_held"`
	// Steps that lie in it, settled or not, and their mean period; the report's Steps are without them.
	Steps  int      `json:"steps"`
	StepMS *float64 `json:"step_ms"`
	// BusyAtUsualPace is how busy the devices are, in percent, if they do the same in a step that is not profiled: an estimate.
	BusyAtUsualPace *float64 `json:"busy_at_usual_pace_percent"`

	covered views.Covered
}

// covered finds out whether devices are known for a part of the recording alone.
func (b *builder) covered() error {
	c, err := views.CoveredBy(b.ctx, b.db, b.options.Rank)
	if err != nil || c.Traces == 0 {
		return err
	}
	b.report.Profiled = &Profiled{
		Traces: c.Traces, MS: ms(c.CoveredNS), RecordedMS: ms(c.RecordedNS), DeviceRows: c.DeviceRows, Launched: c.Launched,
		BoundsChecked: c.BoundsChecked, BoundsHeld: c.BoundsHeld, covered: c,
	}
	return nil
}

// devicesLead says whether times on devices are those of all that was recorded, so that tables are by them.
func (b *builder) devicesLead() bool { return b.deviceRows > 0 && b.report.Profiled == nil }

// pace compares the profiled steps with the others.
func (b *builder) pace() {
	p, s, d := b.report.Profiled, b.report.Steps, b.report.Device
	if p == nil || s == nil || s.MeanMS <= 0 {
		return
	}
	var sum float64
	for _, t := range b.loops {
		if t.PID != s.PID {
			continue
		}
		for _, step := range t.Steps {
			if step.Exact && step.Period > 0 {
				sum += ms(step.Period)
				p.Steps++
			}
		}
	}
	if p.Steps == 0 {
		return
	}
	mean := sum / float64(p.Steps)
	p.StepMS = &mean
	usual := s.MeanMS
	if s.UnslicedMS != nil {
		usual = *s.UnslicedMS
	}
	if d != nil && d.TotalMS > 0 && usual > 0 {
		busy := min(100, 100*d.BusyMS/d.TotalMS*mean/usual)
		p.BusyAtUsualPace = &busy
	}
}

// notes adds the notes below the devices' figures.
func (p *Profiled) notes(s *section, steps *Steps, bounds *DeviceBounds) {
	s.note("of %s alone: a trace was merged for it; the job is slower meanwhile", p.covered.Text())
	if p.StepMS != nil && steps != nil {
		text := fmt.Sprintf("its %d steps take %s", p.Steps, msText(*p.StepMS))
		if p.BusyAtUsualPace != nil {
			text += fmt.Sprintf("; at the pace of the others the same work makes the device busy for about %s %% of the time (estimated)",
				percentText(*p.BusyAtUsualPace))
		}
		s.note("%s", text)
	}
	if p.Launched < p.DeviceRows {
		s.note("%d of %d rows of the device have a recorded launch: tables by operator and line have these alone", p.Launched, p.DeviceRows)
	}
	if p.BoundsChecked > 0 {
		s.note("bounds of device times hold for %d of %d launches", p.BoundsHeld, p.BoundsChecked)
	}
	if bounds != nil {
		lo, hi := bounds.Lo.BusyMS, bounds.Hi.BusyMS
		s.note("in all that was recorded the device was busy for %s to %s, by the bounds of the work that has them",
			msText(min(lo, hi)), msText(max(lo, hi)))
	}
}

// of names the time that a device's values are of.
func (p *Profiled) of(totalMS float64) string {
	if p == nil {
		return fmt.Sprintf("%.2f ms", totalMS)
	}
	return p.covered.Text()
}
