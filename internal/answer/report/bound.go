package report

import (
	"database/sql"

	"github.com/ebpfprof/ebpfprof/internal/peaks"
)

// Bound says how much of what a device can do the counted work needs. It is an
// estimate from shapes: only operators with a formula count.
type Bound struct {
	Device       string  `json:"device"`
	Peak         string  `json:"peak"`
	Kind         string  `json:"element_type"`
	FLOPs        float64 `json:"flops"`
	Recomputed   float64 `json:"recomputed_flops"` // of them, by checkpoints that keep no activations
	Bytes        float64 `json:"bytes"`
	MFU          float64 `json:"mfu_percent"` // without what was recomputed
	MFUBusy      float64 `json:"mfu_busy_percent"`
	HFU          float64 `json:"hfu_percent"` // with it
	HFUBusy      float64 `json:"hfu_busy_percent"`
	MBU          float64 `json:"mbu_percent"`
	Intensity    float64 `json:"intensity_flop_per_byte"`
	Ridge        float64 `json:"ridge_flop_per_byte"`
	Verdict      string  `json:"verdict"` // memory or compute
	Divided      string  `json:"divided_by"`
	Method       string  `json:"method"`
	DeviceMS     float64 `json:"counted_device_ms"`
	SharePercent float64 `json:"counted_percent_of_busy"`

	of string // what the FLOPs and the time are of; "" is the window
}

// utilised says how much of the FLOPs that the device could have done in the window, and while
// it was busy, it did: for the model (MFU), and in all (HFU).
func (v *Bound) utilised(window, busy float64) {
	percent := func(flops, of float64) float64 {
		if of <= 0 {
			return 0
		}
		return 100 * flops / of
	}
	v.MFU, v.MFUBusy = percent(v.FLOPs-v.Recomputed, window), percent(v.FLOPs-v.Recomputed, busy)
	v.HFU, v.HFUBusy = percent(v.FLOPs, window), percent(v.FLOPs, busy)
}

func (b *builder) bound() error {
	launches, err := b.launches()
	switch {
	case err != nil:
		return err
	case b.report.Device != nil && b.report.Profiled == nil:
		return b.boundOfDevice()
	case launches && !b.imported:
		return b.boundOfSteps()
	}
	return b.boundOfProcessor()
}

// boundOfDevice divides by the time of devices.
func (b *builder) boundOfDevice() error {
	var flops, bytes sql.NullFloat64
	var dtype, device sql.NullString
	err := b.db.Row(b.ctx, `SELECT sum(flops * weight)::DOUBLE, sum(bytes_moved * weight)::DOUBLE,
		mode(regexp_extract(input_types, '(c10::)?(BFloat16|Half|float|double|Float8\w*)')),
		(SELECT any_value(device_name) FROM session) FROM rows WHERE flops IS NOT NULL`, nil, &flops, &bytes, &dtype, &device)
	if err != nil {
		return err
	}
	if !flops.Valid {
		b.untold("how far the device is from its peak: no shapes were recorded; profile with record_shapes=True")
		return nil
	}
	peak, ok := b.findPeak(device.String)
	if !ok {
		b.untold("how far the device is from its peak: the recording does not name its device, or the table of peaks lacks it (%q)",
			device.String)
		return nil
	}
	kind := peaks.Kind(dtype.String)
	most := peak.FLOPs[kind]
	if most == 0 {
		b.untold("how far the device is from its peak: %s has no peak for elements of type %q", peak.Device, dtype.String)
		return nil
	}
	var counted sql.NullFloat64
	err = b.db.Row(b.ctx, `SELECT sum(d.duration_ns)::DOUBLE / 1e6 FROM rows d JOIN launch_owner o USING (session_id, launch_id)
		WHERE d.layer = 'device' AND d.category = 'kernel' AND (o.session_id, o.operator_id) IN (
			WITH RECURSIVE inside AS (
				SELECT session_id, span_id FROM rows WHERE flops IS NOT NULL
				UNION ALL SELECT r.session_id, r.span_id FROM rows r JOIN inside i ON r.session_id = i.session_id AND r.parent_id = i.span_id
				WHERE r.layer IN ('op', 'autograd'))
			SELECT (session_id, span_id) FROM inside)`, nil, &counted)
	if err != nil {
		return err
	}
	again, err := b.recomputedFLOPs()
	if err != nil {
		return err
	}
	n := float64(b.report.Device.Count)
	v := &Bound{
		Device: device.String, Peak: peak.Device + ", " + peak.Note, Kind: kind, FLOPs: flops.Float64, Recomputed: again, Bytes: bytes.Float64,
		Divided: "device.total_ms", Method: "estimated", DeviceMS: counted.Float64,
	}
	total, busy := b.report.Device.TotalMS/1e3*n, b.report.Device.BusyMS/1e3*n
	if total > 0 && busy > 0 {
		v.utilised(most*total, most*busy)
		v.MBU = 100 * v.Bytes / (peak.Bytes * total)
		v.SharePercent = 100 * v.DeviceMS / (busy * 1e3)
	}
	v.Ridge = most / peak.Bytes
	v.turn()
	b.report.Bound = v
	return nil
}

// boundOfProcessor is about jobs that compute on the processor: the peak is the
// measured one of this machine, if the recording is of a machine like it, and the
// time that it divides by the operators' own.
func (b *builder) boundOfProcessor() error {
	var flops, bytes, took sql.NullFloat64
	var processor sql.NullString
	err := b.db.Row(b.ctx, `SELECT sum(flops * weight)::DOUBLE, sum(bytes_moved * weight)::DOUBLE, sum(duration_ns * weight)::DOUBLE,
		(SELECT any_value(cpu_model) FROM session) FROM rows WHERE flops IS NOT NULL
		AND duration_ns IS NOT NULL`, nil, &flops, &bytes, &took, &processor)
	if err != nil {
		return err
	}
	if b.imported {
		if flops.Valid {
			b.untold("how far the processor is from its peak: the trace does not name it")
		}
		return nil
	}
	if !flops.Valid || took.Float64 <= 0 {
		if b.spans > 0 {
			b.untold("how far the processor is from its peak: no operator with shapes and a formula was recorded")
		}
		return nil
	}
	m := b.options.Machine
	if m == nil || m.Processor != processor.String {
		b.untold("how far the processor is from its peak: run `ebpfprof peaks` on the machine of the recording (%s), once", processor.String)
		return nil
	}
	again, err := b.recomputedFLOPs()
	if err != nil {
		return err
	}
	seconds := took.Float64 / 1e9
	v := &Bound{
		Device: processor.String, Peak: m.Peak().Note, Kind: "fp32", FLOPs: flops.Float64, Recomputed: again, Bytes: bytes.Float64,
		Divided: "time of the counted operators", Method: "estimated", DeviceMS: took.Float64 / 1e6,
		MBU:   100 * bytes.Float64 / (m.Bytes * seconds),
		Ridge: m.Ridge(),
	}
	window := b.report.WindowMS / 1e3
	v.utilised(m.FLOPs*window, m.FLOPs*seconds)
	if window > 0 {
		v.SharePercent = 100 * seconds / window
	}
	v.turn()
	b.report.Bound = v
	return nil
}
