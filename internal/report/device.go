package report

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

// deviceSweep walks over the edges of all rows: between two edges a device does
// the most useful thing that is open. Sets count as computation, as TraceLens
// has it.
const deviceSweep = `
	WITH work AS (
		SELECT session_id, pid, device_id, ts_ns, duration_ns, category IN ('kernel', 'set') AS computes, category = 'collective' AS communicates, category = 'copy' AS copies
		FROM rows WHERE layer = 'device' AND category IN ('kernel', 'set', 'collective', 'copy') AND duration_ns IS NOT NULL),
	edges AS (
		SELECT session_id, pid, device_id, ts_ns AS t, computes::INT AS a, communicates::INT AS b, copies::INT AS c FROM work
		UNION ALL
		SELECT session_id, pid, device_id, ts_ns + duration_ns, -computes::INT, -communicates::INT, -copies::INT FROM work),
	moments AS (SELECT session_id, pid, device_id, t, sum(a) AS a, sum(b) AS b, sum(c) AS c FROM edges GROUP BY ALL),
	spells AS (
		SELECT session_id, pid, device_id, lead(t) OVER w - t AS ns, sum(a) OVER w > 0 AS computing, sum(b) OVER w > 0 AS communicating, sum(c) OVER w > 0 AS copying
		FROM moments WINDOW w AS (PARTITION BY session_id, pid, device_id ORDER BY t))
	SELECT s.pid, any_value(p.rank), s.device_id, sum(ns)::DOUBLE / 1e6,
		coalesce(sum(ns) FILTER (computing OR communicating OR copying), 0)::DOUBLE / 1e6,
		coalesce(sum(ns) FILTER (computing), 0)::DOUBLE / 1e6,
		coalesce(sum(ns) FILTER (communicating AND NOT computing), 0)::DOUBLE / 1e6,
		coalesce(sum(ns) FILTER (copying AND NOT computing AND NOT communicating), 0)::DOUBLE / 1e6,
		coalesce(sum(ns) FILTER (NOT (computing OR communicating OR copying)), 0)::DOUBLE / 1e6,
		coalesce(sum(ns) FILTER (communicating), 0)::DOUBLE / 1e6, coalesce(sum(ns) FILTER (copying), 0)::DOUBLE / 1e6
	FROM spells s LEFT JOIN process p ON p.session_id = s.session_id AND p.pid = s.pid
	WHERE ns IS NOT NULL GROUP BY s.session_id, s.pid, s.device_id ORDER BY 2, 1, 3`

func (b *builder) devices() error {
	if b.deviceRows == 0 {
		b.untold("what the device did, and when: a recording of the host has bounds of it at most; import a trace of torch.profiler or Nsight Systems of the same job")
		return nil
	}
	err := b.each(deviceSweep, func(scan scan) error {
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
