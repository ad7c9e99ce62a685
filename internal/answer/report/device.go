package report

import (
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/views"
)

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

const deviceTimes = `SELECT s.pid, p.rank, s.device_id, total / 1e6, busy / 1e6, computation / 1e6, exposed_communication / 1e6,
	exposed_copies / 1e6,
		idle / 1e6, communication / 1e6, copies / 1e6
	FROM (%s) s LEFT JOIN process p USING (session_id, pid) ORDER BY 2, 1, 3`

// waitedWork is for how long devices were at work, at least, while threads waited for them,
// whichever piece of their work it was. Of a device no two waits tell of the same time.
const waitedWork = `SELECT pid, device_id, sum(device_busy_lo_ns) / 1e6 FROM rows
	WHERE device_busy_lo_ns IS NOT NULL AND weight <= 1 GROUP BY ALL`

// DeviceBounds is what devices did where only bounds of their times are known: the same sweep
// with the least and with the most time that each piece of work can have taken. At least, a
// device was busy as long as its waits say, too: that much of the time is of no category.
type DeviceBounds struct {
	Lo Device `json:"lo"`
	Hi Device `json:"hi"`
}

func (b *builder) devices() error {
	if err := b.covered(); err != nil {
		return err
	}
	if b.deviceRows == 0 {
		b.report.Profiled = nil
		return b.boundedDevices(true)
	}
	all, err := b.sweepDevices(clockRows, "imported", views.Windows(b.part.From, b.part.Until))
	if err == nil && b.part.From+b.part.Until != 0 {
		all, err = b.byLaunch(all)
	}
	if err != nil || len(all) == 0 {
		return err
	}
	b.report.Devices = all
	mean := meanOf(all)
	b.report.Device = &mean
	if b.report.Profiled != nil {
		return b.boundedDevices(false)
	}
	return b.launchedDevices()
}

// byLaunch gives devices the time of the work that was launched in a part of the recording: idle and exposed
// time stay those of the part by the clock, so that a device may be busy for longer than the part.
func (b *builder) byLaunch(clock []Device) ([]Device, error) {
	launched, err := b.sweepDevices("rows", "imported", views.NoWindows)
	if err != nil {
		return nil, err
	}
	for _, d := range launched {
		i := slices.IndexFunc(clock, func(o Device) bool {
			return o.PID == d.PID && (o.DeviceID == nil) == (d.DeviceID == nil) && (o.DeviceID == nil || *o.DeviceID == *d.DeviceID)
		})
		if i < 0 { // all of it ran later
			d.TotalMS, d.IdleMS, d.ExposedCommunicationMS, d.ExposedMemcpyMS = 0, 0, 0, 0
			clock = append(clock, d)
			continue
		}
		o := &clock[i]
		o.BusyMS, o.ComputationMS, o.CommunicationMS, o.MemcpyMS = d.BusyMS, d.ComputationMS, d.CommunicationMS, d.MemcpyMS
	}
	return clock, nil
}

// launchedWork is the work of devices whose launch was recorded.
const launchedWork = "(SELECT * FROM rows WHERE launch_id IS NOT NULL)"

// launchedDevices does the sweep for the work whose launch was recorded, where there is other
// work: what was launched before the recording began is no time of what was recorded. What CUPTI has was launched while
// it was, if between slices.
func (b *builder) launchedDevices() error {
	var without, with int64
	err := b.db.Row(b.ctx, `SELECT count(*) FILTER (launch_id IS NULL AND coalesce(device_time_method, '') <> 'cupti'),
			count(*) FILTER (launch_id IS NOT NULL)
		FROM rows WHERE layer = 'device' AND category IN ('kernel', 'set', 'collective', 'copy')`, nil, &without, &with)
	if err != nil || without == 0 || with == 0 {
		return err
	}
	all, err := b.sweepDevices(launchedWork, "imported", views.NoWindows)
	if err == nil && len(all) > 0 {
		mean := meanOf(all)
		b.report.DeviceLaunched = &mean
	}
	return err
}

// boundedDevices does the sweep with bounds. Without any, the report says which data it lacks.
func (b *builder) boundedDevices(alone bool) error {
	var ends [2]Device
	for i, end := range []string{"lo", "hi"} {
		all, err := b.sweepDevices(views.Bounded("rows", end), "bounded", views.NoWindows)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			if alone {
				b.untold("%s", b.noDevice())
			}
			return nil
		}
		if end == "lo" {
			if err := b.waited(all); err != nil {
				return err
			}
		}
		ends[i] = meanOf(all)
	}
	b.report.DeviceBounds = &DeviceBounds{ends[0], ends[1]}
	if alone {
		b.untold("when the device worked: of work handed to it there are bounds, which the sweep is done for; " +
			"record with --device-times profiler, or merge a trace of torch.profiler or Nsight Systems of the same time")
	}
	return nil
}

// noDevice says why nothing is known of what devices did.
func (b *builder) noDevice() string {
	if b.imported {
		return "what the device did, and when: the trace has no row of a device; profile with ProfilerActivity.CUDA (or that of your device), and check that its profiler library (CUPTI, roctracer) was loaded"
	}
	return "what the device did, and when: a recording of the host has bounds of it at most; " +
		"record with --device-times profiler, or merge a trace of torch.profiler or Nsight Systems of the same time"
}

// waited has devices be busy for as long as waits for them say: pieces of work with a bound of
// their own are among what they waited for, so that the longer of the two counts.
func (b *builder) waited(all []Device) error {
	return b.each(waitedWork, func(scan scan) error {
		var d Device
		if err := scan(&d.PID, &d.DeviceID, &d.BusyMS); err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(one Device) bool {
			return one.PID == d.PID && (one.DeviceID == nil) == (d.DeviceID == nil) && (d.DeviceID == nil || *one.DeviceID == *d.DeviceID)
		})
		if i >= 0 && all[i].BusyMS < d.BusyMS {
			all[i].BusyMS, all[i].TotalMS = d.BusyMS, max(all[i].TotalMS, d.BusyMS)
			all[i].IdleMS = all[i].TotalMS - d.BusyMS
		}
		return nil
	})
}

func (b *builder) sweepDevices(rows, method, windows string) (all []Device, err error) {
	err = b.each(fmt.Sprintf(deviceTimes, views.Sweep(rows, windows)), func(scan scan) error {
		d := Device{Count: 1, Method: method}
		err := scan(&d.PID, &d.Rank, &d.DeviceID, &d.TotalMS, &d.BusyMS, &d.ComputationMS, &d.ExposedCommunicationMS, &d.ExposedMemcpyMS,
			&d.IdleMS, &d.CommunicationMS, &d.MemcpyMS)
		if err == nil {
			all = append(all, d)
		}
		return err
	})
	return all, err
}

func meanOf(all []Device) Device {
	if len(all) == 1 {
		return all[0]
	}
	mean := Device{Count: len(all), Method: all[0].Method}
	n := float64(mean.Count)
	for _, d := range all {
		mean.TotalMS += d.TotalMS / n
		mean.BusyMS += d.BusyMS / n
		mean.ComputationMS += d.ComputationMS / n
		mean.ExposedCommunicationMS += d.ExposedCommunicationMS / n
		mean.ExposedMemcpyMS += d.ExposedMemcpyMS / n
		mean.IdleMS += d.IdleMS / n
		mean.CommunicationMS += d.CommunicationMS / n
		mean.MemcpyMS += d.MemcpyMS / n
	}
	return mean
}
