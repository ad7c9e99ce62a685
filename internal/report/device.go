package report

import "github.com/ebpfprof/ebpfprof/internal/views"

// Device is what devices did between the first row's begin and the last one's
// end. What is exposed is what nothing more useful hid: communication that no
// computation ran beside, copies that neither ran beside.
type Device struct {
	PID                    int32   `json:"pid"`
	Rank                   *int32  `json:"rank"`
	DeviceID               *int32  `json:"device_id"`
	Count                  int     `json:"count"` // of devices that the values are the mean of
	TotalMS                float64 `json:"total_ms"`
	BusyMS                 float64 `json:"busy_ms"`
	ComputationMS          float64 `json:"computation_ms"`
	ExposedCommunicationMS float64 `json:"exposed_communication_ms"`
	ExposedMemcpyMS        float64 `json:"exposed_memcpy_ms"`
	IdleMS                 float64 `json:"idle_ms"`
	CommunicationMS        float64 `json:"communication_ms"`
	MemcpyMS               float64 `json:"memcpy_ms"`
	Method                 string  `json:"method"`
}

var deviceTimes = `SELECT s.pid, p.rank, s.device_id, total / 1e6, busy / 1e6, computation / 1e6, exposed_communication / 1e6, exposed_copies / 1e6,
		idle / 1e6, communication / 1e6, copies / 1e6
	FROM (` + views.Sweep("rows") + `) s LEFT JOIN process p USING (session_id, pid) ORDER BY 2, 1, 3`

func (b *builder) devices() error {
	if b.deviceRows == 0 {
		b.untold("what the device did, and when: a recording of the host has bounds of it at most; import a trace of torch.profiler or Nsight Systems of the same job")
		return nil
	}
	err := b.each(deviceTimes, func(scan scan) error {
		d := Device{Count: 1, Method: "imported"}
		err := scan(&d.PID, &d.Rank, &d.DeviceID, &d.TotalMS, &d.BusyMS, &d.ComputationMS, &d.ExposedCommunicationMS, &d.ExposedMemcpyMS, &d.IdleMS, &d.CommunicationMS, &d.MemcpyMS)
		if err == nil {
			b.report.Devices = append(b.report.Devices, d)
		}
		return err
	})
	if err != nil || len(b.report.Devices) == 0 {
		return err
	}
	mean := Device{Count: len(b.report.Devices), Method: "imported"}
	if mean.Count == 1 {
		mean = b.report.Devices[0]
	} else {
		n := float64(mean.Count)
		for _, d := range b.report.Devices {
			mean.TotalMS += d.TotalMS / n
			mean.BusyMS += d.BusyMS / n
			mean.ComputationMS += d.ComputationMS / n
			mean.ExposedCommunicationMS += d.ExposedCommunicationMS / n
			mean.ExposedMemcpyMS += d.ExposedMemcpyMS / n
			mean.IdleMS += d.IdleMS / n
			mean.CommunicationMS += d.CommunicationMS / n
			mean.MemcpyMS += d.MemcpyMS / n
		}
	}
	b.report.Device = &mean
	return nil
}
