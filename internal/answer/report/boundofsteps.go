package report

import (
	"database/sql"
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/peaks"
)

// Of a recording of the host, whose devices are known by bounds or for a part of the time, the FLOPs of a step and its period
// say how much of its devices' peak the job uses: that needs no time on a device.

// launches reports whether operators give their work to devices, or their arguments lie there: then their time on the host
// says nothing of a peak.
func (b *builder) launches() (is bool, err error) {
	err = b.db.Row(b.ctx, `SELECT EXISTS (FROM rows WHERE layer = 'device' OR layer = 'runtime' AND category IN ('launch', 'graph')
		OR flops IS NOT NULL AND regexp_matches(input_devices, '"[a-z]') AND NOT contains(input_devices, '"cpu'))`, nil, &is)
	return is, err
}

// stepWork is what the operators of a stretch of time compute.
type stepWork struct {
	flops, bytes, seconds float64
	of                    string // what the time is
}

// wholeRecording is what work is of where no step has all its rows: that of all processes.
const wholeRecording = "the recording"

// workOfStep is a step's work and its usual period, else that of all that was recorded.
func (b *builder) workOfStep() (w stepWork, err error) {
	var flops, bytes sql.NullFloat64
	rows, _ := b.looked()
	whole := b.report.Steps != nil && b.report.Steps.MeanMS > 0 && len(rows) > 0
	for _, row := range rows {
		whole = whole && row.whole
	}
	if !whole {
		w = stepWork{seconds: b.report.WindowMS / 1e3, of: wholeRecording}
		err = b.db.Row(b.ctx, `SELECT sum(flops * weight)::DOUBLE, sum(bytes_moved * weight)::DOUBLE FROM rows
			WHERE flops IS NOT NULL`, nil, &flops, &bytes)
		w.flops, w.bytes = flops.Float64, bytes.Float64
		return w, err
	}
	w = stepWork{seconds: b.report.Steps.MeanMS / 1e3, of: "a step"}
	if ms := b.report.Steps.UnslicedMS; ms != nil {
		w.seconds = *ms / 1e3
	}
	const query = `SELECT sum(flops)::DOUBLE, sum(bytes_moved)::DOUBLE FROM rows
		WHERE flops IS NOT NULL AND pid = ? AND ts_ns >= ? AND ts_ns < ?`
	for _, row := range rows {
		if err := b.db.Row(b.ctx, query, []any{row.pid, row.beginNS, row.untilNS}, &flops, &bytes); err != nil {
			return w, err
		}
		w.flops += flops.Float64 / float64(len(rows))
		w.bytes += bytes.Float64 / float64(len(rows))
	}
	return w, nil
}

// elementType is that of the operands with the most FLOPs.
func (b *builder) elementType() (dtype string, all float64, err error) {
	var of sql.NullString
	var flops sql.NullFloat64
	err = b.db.Row(b.ctx, `SELECT arg_max(kind, n), sum(n)::DOUBLE FROM (
		SELECT regexp_extract(input_types, '(c10::)?(BFloat16|Half|float|double|Float8\w*)') AS kind, sum(flops * weight) AS n
		FROM rows WHERE flops IS NOT NULL GROUP BY 1)`, nil, &of, &flops)
	return of.String, flops.Float64, err
}

// devicePeak is what one of the job's devices can do with elements of a type; untold says why that is not known.
func (b *builder) devicePeak(dtype string) (name string, peak peaks.Peak, most float64, untold string, err error) {
	var device sql.NullString
	if err := b.db.Row(b.ctx, "SELECT any_value(device_name) FROM session", nil, &device); err != nil {
		return "", peak, 0, "", err
	}
	peak, ok := b.findPeak(device.String)
	switch {
	case device.String == "":
		return "", peak, 0, "the recording does not name its device", nil
	case strings.Contains(device.String, ", "):
		return "", peak, 0, fmt.Sprintf("the machine has devices of several models (%s)", device.String), nil
	case !ok:
		return "", peak, 0, fmt.Sprintf("no peak is known of %q: give a file of peaks (--peaks)", device.String), nil
	}
	if most = peak.FLOPs[peaks.Kind(dtype)]; most == 0 {
		return "", peak, 0, fmt.Sprintf("%s has no peak for elements of type %q", peak.Device, dtype), nil
	}
	return device.String, peak, most, "", nil
}

func (b *builder) boundOfSteps() error {
	const what = "how far the device is from its peak: "
	dtype, all, err := b.elementType()
	if err != nil {
		return err
	}
	if all <= 0 {
		b.untold(what + "no operator with shapes and a formula was recorded")
		return nil
	}
	device, peak, most, untold, err := b.devicePeak(dtype)
	if err != nil || untold != "" {
		if untold != "" {
			b.untold("%s", what+untold)
		}
		return err
	}
	w, err := b.workOfStep()
	if err != nil || w.flops <= 0 || w.seconds <= 0 {
		return err
	}
	devices, err := b.devicesUsed(w.of == wholeRecording)
	if err != nil {
		return err
	}
	again, err := b.recomputedFLOPs()
	if err != nil {
		return err
	}
	v := &Bound{
		Device: device, Peak: peak.Device + ", " + peak.Note, Kind: peaks.Kind(dtype), FLOPs: w.flops,
		Recomputed: again / all * w.flops, Bytes: w.bytes, Divided: "period of " + w.of, Method: "estimated",
		MBU: 100 * w.bytes / (peak.Bytes * w.seconds * devices), Ridge: most / peak.Bytes, of: w.of,
	}
	busy := 0.0 // unknown
	if p := b.report.Profiled; p != nil && p.BusyAtUsualPace != nil {
		busy = w.seconds * *p.BusyAtUsualPace / 100
	}
	v.utilised(most*w.seconds*devices, most*busy*devices)
	v.turn()
	b.report.Bound = v
	return nil
}

// devicesUsed is how many devices a process gives work to: on average, or of all processes together.
func (b *builder) devicesUsed(together bool) (n float64, err error) {
	add := "avg"
	if together {
		add = "sum"
	}
	var devices sql.NullFloat64
	err = b.db.Row(b.ctx, `SELECT `+add+`(n)::DOUBLE FROM (SELECT count(DISTINCT device_id) AS n FROM rows
		WHERE device_id IS NOT NULL AND (layer = 'device' OR layer = 'runtime' AND category IN ('launch', 'graph'))
		GROUP BY session_id, pid)`, nil, &devices)
	return max(1, devices.Float64), err
}

// turn says on which side of the device's turning point the work is.
func (v *Bound) turn() {
	if v.Bytes > 0 {
		v.Intensity = v.FLOPs / v.Bytes
	}
	v.Verdict = "compute"
	if v.Intensity < v.Ridge {
		v.Verdict = "memory"
	}
}

// note is how much of the peak is used, in words.
func (v *Bound) note(s *section) {
	of, busy := v.of, v.MFUBusy > 0
	if of == "" {
		of = "the window"
	}
	text := fmt.Sprintf("MFU %s %% of %s", percentText(v.MFU), of)
	if busy {
		text += fmt.Sprintf(", %s %% of busy time", percentText(v.MFUBusy))
	}
	s.note("%s; MBU %s %% (%s of %s, %s)", text, percentText(v.MBU), flopText(v.FLOPs), v.Kind, v.Peak)
	if v.Recomputed <= 0 {
		return
	}
	text = fmt.Sprintf("HFU %s %% of %s", percentText(v.HFU), of)
	if busy {
		text += fmt.Sprintf(", %s %% of busy time", percentText(v.HFUBusy))
	}
	s.note("%s: with %s that checkpoints compute again", text, flopText(v.Recomputed))
}

func (b *builder) findPeak(device string) (peaks.Peak, bool) {
	return peaks.FindAmong(b.options.Peaks, device)
}
