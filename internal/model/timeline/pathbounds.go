package timeline

import (
	"cmp"
	"slices"
)

// PathBounds are the path's sums at both ends of the bounds of device times, the lesser first.
type PathBounds struct {
	PathLoMS         float64 `json:"path_lo_ms"`
	PathHiMS         float64 `json:"path_hi_ms"`
	HostLoMS         float64 `json:"host_lo_ms"`
	HostHiMS         float64 `json:"host_hi_ms"`
	DeviceLoMS       float64 `json:"device_lo_ms"`
	DeviceHiMS       float64 `json:"device_hi_ms"`
	BetweenLoMS      float64 `json:"between_lo_ms"`
	BetweenHiMS      float64 `json:"between_hi_ms"`
	HiddenDeviceLoMS float64 `json:"hidden_device_lo_ms"`
	HiddenDeviceHiMS float64 `json:"hidden_device_hi_ms"`
	BoundByLo        BoundBy `json:"bound_by_lo"`
	BoundByHi        BoundBy `json:"bound_by_hi"`
}

// PartBounds are a part at both ends, the lesser first.
type PartBounds struct {
	ExposedLoMS float64 `json:"exposed_lo_ms"`
	ExposedHiMS float64 `json:"exposed_hi_ms"`
	HiddenLoMS  float64 `json:"hidden_lo_ms"`
	HiddenHiMS  float64 `json:"hidden_hi_ms"`
	PercentLo   float64 `json:"percent_lo"`
	PercentHi   float64 `json:"percent_hi"`
}

// between gives the path its other end, and sorts its parts by the most that they can be.
func (p *CriticalPath) between(most *CriticalPath) {
	p.most = most
	b := new(PathBounds)
	b.PathLoMS, b.PathHiMS = ends(p.PathMS, most.PathMS)
	b.HostLoMS, b.HostHiMS = ends(p.HostMS, most.HostMS)
	b.DeviceLoMS, b.DeviceHiMS = ends(p.DeviceMS, most.DeviceMS)
	b.BetweenLoMS, b.BetweenHiMS = ends(p.BetweenMS, most.BetweenMS)
	b.HiddenDeviceLoMS, b.HiddenDeviceHiMS = ends(p.HiddenDeviceMS, most.HiddenDeviceMS)
	x, y := p.BoundBy, most.BoundBy
	for _, f := range []func(*BoundBy) *float64{
		func(b *BoundBy) *float64 { return &b.CPU }, func(b *BoundBy) *float64 { return &b.InCalls },
		func(b *BoundBy) *float64 { return &b.InWaits }, func(b *BoundBy) *float64 { return &b.Compute },
		func(b *BoundBy) *float64 { return &b.Communication }, func(b *BoundBy) *float64 { return &b.Copies },
		func(b *BoundBy) *float64 { return &b.KernelKernel }, func(b *BoundBy) *float64 { return &b.StreamWait },
		func(b *BoundBy) *float64 { return &b.KernelLaunch },
	} {
		*f(&b.BoundByLo), *f(&b.BoundByHi) = ends(*f(&x), *f(&y))
	}
	p.PathBounds = b
	type key struct{ where, layer, name string }
	at := map[key]PathPart{}
	for _, part := range most.Parts {
		at[key{part.Where, part.Layer, part.Name}] = part
	}
	for i := range p.Parts {
		part := &p.Parts[i]
		k := key{part.Where, part.Layer, part.Name}
		part.between(at[k])
		delete(at, k)
	}
	for _, other := range most.Parts {
		k := key{other.Where, other.Layer, other.Name}
		if _, left := at[k]; left {
			part := PathPart{Where: k.where, Layer: k.layer, Name: k.name}
			part.between(other)
			p.Parts = append(p.Parts, part)
		}
	}
	slices.SortStableFunc(p.Parts, func(a, b PathPart) int {
		return cmp.Or(cmp.Compare(b.ExposedHiMS, a.ExposedHiMS), cmp.Compare(b.HiddenHiMS, a.HiddenHiMS), cmp.Compare(a.Name, b.Name))
	})
}

func (p *PathPart) between(most PathPart) {
	b := new(PartBounds)
	b.ExposedLoMS, b.ExposedHiMS = ends(p.ExposedMS, most.ExposedMS)
	b.HiddenLoMS, b.HiddenHiMS = ends(p.HiddenMS, most.HiddenMS)
	b.PercentLo, b.PercentHi = ends(p.Percent, most.Percent)
	p.PartBounds = b
}

func ends(a, b float64) (low, high float64) { return min(a, b), max(a, b) }
