package accel

import "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"

// What a blocked wait proves of the device, however much it was for: that the device was
// at work meanwhile. Which of several pieces of work took that time does not follow, so it
// is no bound of any of them, and stands in the row of the wait.

// between is more than a device takes from the end of one piece of work to the begin of the
// next that is there already, of another stream too, ns: some microseconds on real ones.
const between = 10_000

// mostBusy is of how many homes such waits are kept: a device has a context, as a rule.
const mostBusy = 1 << 8

// elsewhere reports whether two homes are certainly on different devices.
func (h home) elsewhere(other home) bool {
	return h.device >= 0 && other.device >= 0 && h.device != other.device
}

// place is where a stream's work goes, as far as any was seen.
func (l *timeline) place() home {
	if l.next() == 0 {
		return home{device: -1}
	}
	return l.home
}

// blocked is for how long the call was blocked because of what it waited for, 0 where that
// is not known.
func (c *Call) blocked() int64 {
	if c.f.Category == "event" || !c.args.Has(spec.FieldDelay) {
		return 0
	}
	took, delay := end(c.span)-c.span.StartNS, c.args.value[spec.FieldDelay]
	if took <= waking || delay >= uint64(took) {
		return 0
	}
	return max(0, took-int64(delay)-waking)
}

// dark are the homes of streams that may have something to do that is no work that was
// seen: of any stream a default stream may wait for, and so whoever waits for that.
func (t *deviceTimes) dark(epoch uint32) (homes []home) {
	for _, line := range t.streams {
		if line.next() == 0 && line.strange == 0 && len(line.joins) == 0 {
			continue
		}
		if line.settled != epoch || line.strange != 0 || t.abroad(line) {
			homes = append(homes, line.place())
		}
	}
	return homes
}

// abroad reports whether a stream waits for one that may be on another device.
func (t *deviceTimes) abroad(line *timeline) bool {
	for _, j := range line.joins {
		if other := t.streams[j.mark.stream]; other == nil || other.place() != line.place() {
			return true
		}
	}
	return false
}

// where is the home of all the work that was shown, if it has one.
func (p *proof) where() (at home, one bool) {
	for i, w := range p.shown {
		if i > 0 && w.home != at {
			return at, false
		}
		at = w.home
	}
	return at, len(p.shown) > 0
}

// busy notes for how long the device was at work during a wait. Of a device no time counts
// twice, whoever waited: the rows' sum is a bound, too.
func (t *deviceTimes) busy(c *Call, p *proof) {
	at, one := p.where()
	if !one || p.more || p.unsettled || at.device != c.home().device {
		return
	}
	for _, other := range p.dark {
		if !other.elsewhere(at) {
			return
		}
	}
	began := p.began
	for other, until := range t.busyTill {
		if !other.elsewhere(at) {
			began = max(began, until)
		}
	}
	others, _ := t.beside(at) // between which and the work that was shown there may be gaps, too
	least := p.blocked - (began - p.began) - int64(len(p.shown)-1+others)*between
	if least <= 0 {
		return
	}
	if _, known := t.busyTill[at]; !known && len(t.busyTill) >= mostBusy {
		return
	}
	t.busyTill[at] = p.ended
	c.detail().DeviceBusyLoNS = &least
}
