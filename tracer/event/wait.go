package event

// Wait is what is known of a wait for a device.
type Wait struct {
	// Stream and CorrelationID say what a wait on a device (category sync) waited for: a
	// stream, the record of an event.
	Stream        *int64
	CorrelationID *int64
	// DeviceBusyLoNS is for how long the device was at work meanwhile, at least.
	DeviceBusyLoNS *int64
}

// MakeWait returns its Wait, after making one if there is none.
func (d *Detail) MakeWait() *Wait {
	if d.Wait == nil {
		d.Wait = new(Wait)
	}
	return d.Wait
}
