package accel

import "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"

// devices knows on which device the handles of one runtime in one process are.
// A device that was not seen to be chosen is not known: nothing here is 0 by
// default.
type devices struct {
	contexts map[uint64]*int32
	threads  map[uint32]*currentDevice
	streams  map[uint64]streamDevice
	numbers  map[uint64]*int32 // of devices that have handles
}

// currentDevice is what is current on a thread: the runtimes keep a stack of
// contexts, or a device by number.
type currentDevice struct {
	contexts []uint64
	device   *int32
}

type streamDevice struct {
	context uint64
	device  *int32
}

func newDevices() devices {
	return devices{contexts: map[uint64]*int32{}, threads: map[uint32]*currentDevice{}, streams: map[uint64]streamDevice{},
		numbers: map[uint64]*int32{}}
}

func (d *devices) thread(tid uint32) *currentDevice {
	t, ok := d.threads[tid]
	if !ok {
		t = &currentDevice{}
		d.threads[tid] = t
	}
	return t
}

// current is the thread's context, 0 where that is not known, and its device.
func (d *devices) current(tid uint32) streamDevice {
	t, ok := d.threads[tid]
	if !ok {
		return streamDevice{}
	}
	if n := len(t.contexts); n > 0 {
		top := t.contexts[n-1]
		if device, known := d.contexts[top]; known {
			return streamDevice{top, device}
		}
		return streamDevice{top, t.device}
	}
	return streamDevice{0, t.device}
}

// setDevice gives a span its context and device: those of its stream, else those
// that are current on its thread.
func (c *Call) setDevice() {
	where, known := streamDevice{}, false
	if c.args.Has(spec.FieldStream) {
		where, known = c.devices.streams[c.args.value[spec.FieldStream]]
	}
	if number := c.devices.numbers[c.args.value[spec.FieldDeviceHandle]]; !known && number != nil && c.f.Effect != spec.NumbersDevices {
		where, known = streamDevice{device: number}, true
	}
	if device := c.devices.contexts[c.args.value[spec.FieldContext]]; !known && device != nil {
		where, known = streamDevice{device: device}, true
	}
	if !known {
		where = c.devices.current(c.tid)
	}
	if where.context != 0 && !c.args.Has(spec.FieldContext) {
		context := int64(where.context)
		c.detail().Context = &context
	}
	if where.device != nil && !c.args.Has(spec.FieldDeviceID) {
		c.detail().DeviceID = where.device
	}
}

// apply keeps what a call says of contexts, devices and streams.
func (d *devices) apply(c *Call) {
	context := c.args.value[spec.FieldContext]
	var device *int32
	if c.args.Has(spec.FieldDeviceID) {
		device = deviceID(int32(c.args.value[spec.FieldDeviceID]))
	}
	switch c.f.Effect {
	case spec.CreatesContext:
		d.contexts[context] = device
		d.thread(c.tid).push(context)
	case spec.NamesContext:
		if device == nil && c.args.value[spec.FieldCount] == 1 { // a context for one device, by its handle
			device = d.numbers[c.args.value[spec.FieldDeviceHandle]]
		}
		d.contexts[context] = device
	case spec.DestroysContext:
		delete(d.contexts, context)
	case spec.SetsContext:
		d.thread(c.tid).set(context)
	case spec.PushesContext:
		d.thread(c.tid).push(context)
	case spec.PopsContext:
		if t := d.thread(c.tid); len(t.contexts) > 0 {
			t.contexts = t.contexts[:len(t.contexts)-1]
		}
	case spec.SetsDevice:
		t := d.thread(c.tid)
		t.contexts, t.device = nil, device
	case spec.NamesDevice:
		t := d.thread(c.tid)
		if n := len(t.contexts); n > 0 {
			d.contexts[t.contexts[n-1]] = device
		} else {
			t.device = device
		}
	case spec.NumbersDevices:
		d.number(c.handedOut())
	case spec.OrdersStream, spec.BeginsCapture:
		if !c.args.Has(spec.FieldDeviceHandle) {
			return
		}
		d.streams[c.args.value[spec.FieldStream]] = streamDevice{context, d.numbers[c.args.value[spec.FieldDeviceHandle]]}
	case spec.CreatesStream:
		d.streams[c.args.value[spec.FieldStream]] = d.current(c.tid)
	case spec.DestroysStream:
		delete(d.streams, c.args.value[spec.FieldStream])
	}
}

// set makes a context the top of the thread's stack; 0 takes the top away.
func (t *currentDevice) set(context uint64) {
	if n := len(t.contexts); n > 0 {
		t.contexts = t.contexts[:n-1]
	}
	t.device = nil
	if context != 0 {
		t.contexts = append(t.contexts, context)
	}
}

// number gives devices their numbers in the order of the first list that had them.
func (d *devices) number(handles []uint64) {
	for i, handle := range handles {
		if _, known := d.numbers[handle]; !known && handle != 0 {
			d.numbers[handle] = deviceID(int32(i))
		}
	}
}

// handedOut are the devices that a call handed out: at most as many as asked for,
// and as there are.
func (c *Call) handedOut() []uint64 {
	handles := c.all(spec.FieldDeviceHandle)
	if c.args.Has(spec.FieldSerial) {
		handles = handles[:min(uint64(len(handles)), c.args.value[spec.FieldSerial])]
	}
	return handles
}

// deviceIDs are shared by the rows: a pointer each would be one more
// allocation a launch.
var deviceIDs = func() (ids [64]int32) {
	for i := range ids {
		ids[i] = int32(i)
	}
	return ids
}()

func deviceID(n int32) *int32 {
	if n >= 0 && int(n) < len(deviceIDs) {
		return &deviceIDs[n]
	}
	if n < 0 {
		return nil // the host, to a prefetch
	}
	return &n
}
