package nvml

import "unsafe"

// Functions of GPM, GPU performance monitoring of Hopper and later.
var gpmFunctions = []string{"nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet", "nvmlGpmSampleFree"}

// GPMSample is the library's; GPM averages between two of them.
type GPMSample struct {
	library *Library
	handle  uintptr
}

// HasGPM reports whether driver and device have GPM.
func (d Device) HasGPM() bool {
	if !d.library.Has(gpmFunctions...) {
		return false
	}
	support := struct{ Version, Supported uint32 }{Version: 1}
	r := d.library.call("nvmlGpmQueryDeviceSupport", d.handle, uintptr(unsafe.Pointer(&support)))
	return r == Success && support.Supported != 0
}

// NewGPMSample allocates a sample; Free frees it.
func (l *Library) NewGPMSample() (s GPMSample, r Return) {
	s.library = l
	return s, l.call("nvmlGpmSampleAlloc", uintptr(unsafe.Pointer(&s.handle)))
}

// Free frees a sample, also one that was never allocated.
func (s GPMSample) Free() {
	if s.handle != 0 {
		s.library.call("nvmlGpmSampleFree", s.handle)
	}
}

// Take takes the device's counters into the sample.
func (d Device) Take(s GPMSample) Return {
	return d.library.call("nvmlGpmSampleGet", d.handle, s.handle)
}

// GPMValue is one average between two samples.
type GPMValue struct {
	Metric uint32
	Result Return
	Value  float64
}

// gpmMetric is nvmlGpmMetric_t; the library points Info to texts of its own.
type gpmMetric struct {
	metric, result uint32
	value          float64
	info           [3]uintptr
}

// mostGPM is how many metrics one call asks for: the array of the oldest API's nvmlGpmMetricsGet_t has room for so many.
const mostGPM = 98

// gpmMetrics is nvmlGpmMetricsGet_t.
type gpmMetrics struct {
	version, count uint32
	older, newer   uintptr
	metrics        [mostGPM]gpmMetric
}

// GPM averages metrics between two samples into values, at most 98.
func (l *Library) GPM(older, newer GPMSample, values []GPMValue) Return {
	values = values[:min(len(values), mostGPM)]
	question := &gpmMetrics{version: 1, count: uint32(len(values)), older: older.handle, newer: newer.handle}
	for i, v := range values {
		question.metrics[i].metric = v.Metric
	}
	r := l.call("nvmlGpmMetricsGet", uintptr(unsafe.Pointer(question)))
	for i := range values {
		values[i].Result, values[i].Value = Return(question.metrics[i].result), question.metrics[i].value
	}
	return r
}
