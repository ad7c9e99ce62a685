package report

import "fmt"

// CUPTI says what devices did from a process's first call of CUDA to its end: while it imports, loads and compiles devices
// have nothing to do. What somebody wants to know is how busy they are in the loop.

// byCUPTI says whether CUPTI recorded in a process: its steps are longer than without.
func (b *builder) byCUPTI(pid int) (yes bool, err error) {
	err = b.db.Row(b.ctx, fmt.Sprintf(`SELECT count(*) > 0 FROM merged_trace
		WHERE method = 'cupti' AND device_rows > 0 AND pid = %d`, pid), nil, &yes)
	return yes, err
}

func (b *builder) devicesInSteps() error {
	s := b.report.Steps
	if s == nil || b.deviceRows == 0 {
		return nil
	}
	var err error
	if s.ByCUPTI, err = b.byCUPTI(s.PID); err != nil || !s.ByCUPTI || b.part.From+b.part.Until != 0 || len(b.stepRows) == 0 {
		return err
	}
	windows := fmt.Sprintf(`(SELECT DISTINCT session_id, pid, %d::BIGINT AS from_ns, %d::BIGINT AS until_ns
		FROM merged_trace WHERE method = 'cupti' AND pid = %d)`,
		b.stepRows[0].beginNS, b.stepRows[len(b.stepRows)-1].untilNS, s.PID)
	all, err := b.sweepDevices("(SELECT * FROM rows WHERE pid = "+fmt.Sprint(s.PID)+")", "imported", windows)
	if err == nil && len(all) > 0 {
		mean := meanOf(all)
		b.report.DeviceInSteps = &mean
	}
	return err
}

// deviceAtWork is what devices did in the loop, where that is known, and in all of the time otherwise.
func (r *Report) deviceAtWork() *Device {
	if r.DeviceInSteps != nil {
		return r.DeviceInSteps
	}
	return r.Device
}

// ofDevice names the time that a device's values are of.
func (r *Report) ofDevice(d *Device) string {
	if d == r.DeviceInSteps {
		return fmt.Sprintf("the settled steps (%s)", msText(d.TotalMS))
	}
	return r.Profiled.of(d.TotalMS)
}
