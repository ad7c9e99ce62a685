package pattern

import (
	"cmp"
	"math"
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// What the device does the host does not see: of each launch and copy it knows that it took
// so long at the least and so long at the most. So a kernel's share is two bounds, and no
// point is between them that would be known better.

// Work of one worker that is kept apart in one window.
const (
	mostKernels = 1024 // by name
	mostStreams = 64   // of a kernel
	toldKernels = 64   // have a row of their own; the others are one
)

// kernel is work of one name.
type kernel struct {
	class Class
	name  string
}

const otherKernels = "other kernels"

// deviceTime is what is known of the time that work of one name took.
type deviceTime struct {
	count    int64
	least    map[stream]int64 // by stream: what runs on one runs one after the other
	most     int64
	longest  int64
	measured bool // all of it
	partial  bool // some of it was seen in slices alone, so that there may have been more
	times    histogram
}

type stream struct {
	device int32
	handle int64
}

// onDevice is the class of what runs on a device, and what is known of its time.
func onDevice(s *event.Span) (class Class, least, most int64, ok bool) {
	if s.Detail == nil {
		return "", 0, 0, false
	}
	lo, hi := s.Detail.DeviceTimeLoNS, s.Detail.DeviceTimeHiNS
	switch {
	case s.Call.Layer == "device" && s.DurationNS >= 0: // it was measured, by who recorded it
		least, most = s.DurationNS, s.DurationNS
	case s.Call.Layer == "runtime" && lo != nil && hi != nil && *lo >= 0 && *hi >= *lo:
		least, most = *lo, *hi
	default:
		return "", 0, 0, false
	}
	switch s.Call.Category {
	case "launch", "graph", "kernel":
		return Kernel, least, most, true
	case "copy", "set":
		return Copy, least, most, true
	}
	return "", 0, 0, false
}

// ran takes a launch or a copy whose time is bounded.
func (w *worker) ran(s *event.Span, lost *Lost) {
	class, least, most, ok := onDevice(s)
	if !ok {
		return
	}
	if w.kernels == nil {
		w.kernels = map[kernel]*deviceTime{}
	}
	of := kernel{class, s.Call.Name}
	t := w.kernels[of]
	if t == nil {
		if len(w.kernels) >= mostKernels {
			lost.Functions++
			of = kernel{Kernel, otherKernels}
		}
		if t = w.kernels[of]; t == nil {
			t = &deviceTime{least: map[stream]int64{}, measured: true}
			w.kernels[of] = t
		}
	}
	var on stream
	if s.Detail.DeviceID != nil {
		on.device = *s.Detail.DeviceID
	}
	if s.Detail.Stream != nil {
		on.handle = *s.Detail.Stream
	}
	if _, known := t.least[on]; known || len(t.least) < mostStreams {
		t.least[on] += least
	}
	t.count++
	t.most, t.longest = t.most+most, max(t.longest, most)
	t.measured = t.measured && least == most
	t.partial = t.partial || s.SliceID != 0
	t.times.add(most)
}

// atLeast is the time in which some of the work ran: that of the stream with most of it.
func (t *deviceTime) atLeast() (ns int64) {
	for _, n := range t.least {
		ns = max(ns, n)
	}
	return ns
}

// merge puts two of them together.
func (t *deviceTime) merge(o *deviceTime) {
	t.count, t.most, t.longest = t.count+o.count, t.most+o.most, max(t.longest, o.longest)
	t.measured, t.partial = t.measured && o.measured, t.partial || o.partial
	for on, ns := range o.least {
		if _, known := t.least[on]; known || len(t.least) < mostStreams {
			t.least[on] += ns
		}
	}
}

// devicePatterns are those with the most time, and one of all others.
func (w *worker) devicePatterns(base Pattern) (all []Pattern) {
	beyond := kernel{Kernel, otherKernels}
	rest := w.kernels[beyond]
	order := make([]kernel, 0, len(w.kernels))
	for k := range w.kernels {
		if k != beyond {
			order = append(order, k)
		}
	}
	slices.SortFunc(order, func(a, b kernel) int {
		x, y := w.kernels[a], w.kernels[b]
		return cmp.Or(cmp.Compare(y.atLeast(), x.atLeast()), cmp.Compare(y.most, x.most), cmp.Compare(a.class, b.class),
			cmp.Compare(a.name, b.name))
	})
	for i, k := range order {
		switch {
		case i < toldKernels:
			all = append(all, w.kernels[k].pattern(base, k))
		case rest == nil:
			rest = w.kernels[k]
		default:
			rest.merge(w.kernels[k])
		}
	}
	if rest != nil {
		rest.measured = false // their times are of different work
		all = append(all, rest.pattern(base, beyond))
	}
	return all
}

func (t *deviceTime) pattern(base Pattern, k kernel) Pattern {
	p := base
	f := function{class: k.class, name: k.name}
	f.hash()
	p.Function, p.Class, p.Name, p.Basis, p.Resource = f.key, k.class, k.name, Device, "device"
	share := func(ns int64) float64 { return math.Min(1, float64(ns)/float64(p.ObservedNS)) }
	p.BetaLo, p.BetaHi = share(t.atLeast()), share(t.most)
	if t.partial {
		p.BetaHi = 1
	}
	p.Beta = p.BetaLo // no more is certain
	p.Count = t.count
	if t.measured {
		p.MeanNS, p.P99NS, p.LongestNS = t.most/max(1, t.count), t.times.quantile(0.99), t.longest
	}
	return p
}
