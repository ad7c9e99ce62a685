package accel

import (
	"math"
	"math/bits"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

const fields = int(spec.LastField) + 1

// Arguments are the captured values of one call, by their meaning.
type Arguments struct {
	value [fields]uint64
	known [fields]bool
}

// Read sorts a record's values by the catalog's fields; those that could not
// be read stay unknown.
func (a *Arguments) Read(f *spec.Function, r *Record) {
	torn := false // an id of which a word is missing is another one
	for i := range f.Values {
		v := &f.Values[i]
		if i >= len(r.Args) || r.Faults&(1<<i) != 0 || v.AtReturn && !r.EndSeen {
			torn = torn || v.Field == spec.FieldUniqueID
			continue
		}
		number := v.Number(r.Args[i])
		if v.Field == spec.FieldUniqueID {
			number = mix(a.value[v.Field], number)
		}
		a.value[v.Field], a.known[v.Field] = number, true
	}
	if torn {
		a.forget(spec.FieldUniqueID)
	}
	if f.Node != nil {
		a.node(f.Node)
	}
	if a.Has(spec.FieldLocation) {
		a.locate()
	}
}

// mix adds a word to a hash: the finaliser of splitmix64 over both.
func mix(hash, word uint64) uint64 {
	hash += word + 0x9e3779b97f4a7c15
	hash = (hash ^ hash>>30) * 0xbf58476d1ce4e5b9
	hash = (hash ^ hash>>27) * 0x94d049bb133111eb
	return hash ^ hash>>31
}

// Value is a captured value, 0 where there is none.
func (a *Arguments) Value(f spec.Field) uint64 { return a.value[f] }

// Set gives a field a value that the record did not have.
func (a *Arguments) Set(f spec.Field, v uint64) { a.value[f], a.known[f] = v, true }

// Has reports whether a value was captured and could be read.
func (a *Arguments) Has(f spec.Field) bool { return a.known[f] }

// Int64 is a value as a nullable column takes it.
func (a *Arguments) Int64(f spec.Field) *int64 {
	if !a.known[f] {
		return nil
	}
	v := int64(a.value[f])
	return &v
}

// Detail makes the rare columns of a span, nil when there are none.
func (a *Arguments) Detail(f *spec.Function) *event.Detail {
	var d *event.Detail
	for _, column := range []struct {
		field spec.Field
		set   func(*event.Detail, *int64)
	}{
		{spec.FieldBytes, func(d *event.Detail, v *int64) { d.Bytes = v }},
		{spec.FieldContext, func(d *event.Detail, v *int64) { d.Context = v }},
		{spec.FieldStream, func(d *event.Detail, v *int64) { d.Stream = v }},
		{spec.FieldHandle, func(d *event.Detail, v *int64) { d.Handle = v }},
		{spec.FieldKernel, func(d *event.Detail, v *int64) { d.Handle = v }},
		{spec.FieldSerial, func(d *event.Detail, v *int64) { d.CorrelationID = v }},
		{spec.FieldDevices, func(d *event.Detail, v *int64) { d.DeviceCount = v }},
		{spec.FieldArguments, func(d *event.Detail, v *int64) { d.ArgumentCount = v }},
		{spec.FieldErrorCode, func(d *event.Detail, v *int64) { d.ErrorCode = v }},
		{spec.FieldSharedBytes, func(d *event.Detail, v *int64) { d.SharedBytes = v }},
	} {
		if v := a.Int64(column.field); v != nil {
			d = orNew(d)
			column.set(d, v)
		}
	}
	switch {
	case a.Has(spec.FieldDimensions):
		d = orNew(d)
		a.workSizes(d, int(a.value[spec.FieldDimensions]))
	case a.Has(spec.FieldWorkX):
		d = orNew(d)
		a.workSizes(d, a.dimensions(spec.FieldWorkX))
	case a.Has(spec.FieldGridX):
		d = orNew(d)
		a.gridSizes(d)
	}
	if v := a.Int64(spec.FieldDeviceID); v != nil {
		d = orNew(d)
		d.DeviceID = deviceID(int32(*v))
	}
	if a.Has(spec.FieldWidth) {
		d = orNew(d)
		d.Bytes = a.product(spec.FieldWidth, spec.FieldHeight, spec.FieldDepth)
	}
	if a.Has(spec.FieldShapes) || a.Has(spec.FieldTarget) {
		d = orNew(d)
		a.arrayDetail(f, d)
	}
	return d
}

// product multiplies the sizes that the call has; nil when that makes no sense.
func (a *Arguments) product(sizes ...spec.Field) *int64 {
	bytes := int64(1)
	for _, f := range sizes {
		if !a.known[f] || f == spec.FieldDepth && a.value[f] == 0 { // Level Zero: a flat region
			continue
		}
		high, low := bits.Mul64(uint64(bytes), a.value[f])
		if high != 0 || low > math.MaxInt64 {
			return nil
		}
		bytes = int64(low)
	}
	return &bytes
}

// dimensions is how many sizes from a field on the call has.
func (a *Arguments) dimensions(first spec.Field) int {
	n := 1
	for n < 3 && a.known[first+spec.Field(n)] {
		n++
	}
	return n
}

// gridSizes fills grid, block and work of a launch that says how many blocks.
func (a *Arguments) gridSizes(d *event.Detail) {
	d.Grid = a.sizes(spec.FieldGridX, a.dimensions(spec.FieldGridX))
	if a.known[spec.FieldBlockX] {
		d.Block = a.sizes(spec.FieldBlockX, a.dimensions(spec.FieldBlockX))
	}
	if d.Grid == nil || d.Block == nil {
		return
	}
	d.Work = &[3]int64{d.Grid[0] * d.Block[0], d.Grid[1] * d.Block[1], d.Grid[2] * d.Block[2]}
}

// workSizes fills work, block and grid. Only the first so many dimensions were
// given; the words behind the others are not the caller's.
func (a *Arguments) workSizes(d *event.Detail, dimensions int) {
	if dimensions < 1 || dimensions > 3 {
		return
	}
	d.Work = a.sizes(spec.FieldWorkX, dimensions)
	d.Block = a.sizes(spec.FieldBlockX, dimensions)
	if d.Work == nil || d.Block == nil {
		return
	}
	grid := [3]int64{}
	for i := range grid {
		grid[i] = (d.Work[i] + d.Block[i] - 1) / d.Block[i]
	}
	d.Grid = &grid
}

// sizes reads three sizes, 1 in the dimensions that the call does not have; nil
// when the caller gave none or they make no sense.
func (a *Arguments) sizes(first spec.Field, dimensions int) *[3]int64 {
	sizes := [3]int64{1, 1, 1}
	for i := range dimensions {
		field := first + spec.Field(i)
		if !a.known[field] || a.value[field] == 0 || a.value[field] > 1<<40 {
			return nil
		}
		sizes[i] = int64(a.value[field])
	}
	return &sizes
}

// Direction is that of a copy: what the function fixes, or what its arguments say.
func (a *Arguments) Direction(f *spec.Function) string {
	switch {
	case f.Direction != "":
		return f.Direction
	case a.Has(spec.FieldCopyKind):
		if kind := a.value[spec.FieldCopyKind]; kind < uint64(len(copyKinds)) {
			return copyKinds[kind]
		}
	case a.Has(spec.FieldSourceKind) && a.Has(spec.FieldTargetKind):
		from, to := memoryKinds[a.value[spec.FieldSourceKind]], memoryKinds[a.value[spec.FieldTargetKind]]
		if from != "" && to != "" {
			return from + "_to_" + to
		}
	}
	return ""
}

// copyKinds are cudaMemcpyKind and hipMemcpyKind; the fifth finds out itself.
var copyKinds = [...]string{"host_to_host", "host_to_device", "device_to_host", "device_to_device", ""}

// memoryKinds are CUmemorytype: an array is on the device, unified memory anywhere.
var memoryKinds = map[uint64]string{1: "host", 2: "device", 3: "device"}

func orNew(d *event.Detail) *event.Detail {
	if d == nil {
		return &event.Detail{}
	}
	return d
}
