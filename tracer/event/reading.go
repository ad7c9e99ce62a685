package event

// CounterKind says what a reading's value is.
type CounterKind string

const (
	// Gauge: the value at that moment. PeriodNS is the time since the reading before.
	Gauge CounterKind = "gauge"
	// Delta: what was added in the PeriodNS before.
	Delta CounterKind = "delta"
	// Mean: an average that the driver made over the PeriodNS before; absent
	// where the driver does not say over what time.
	Mean CounterKind = "mean"
)

// Counter is one reading of a counter of the machine or of a device.
type Counter struct {
	TSNS     int64
	PeriodNS *int64 // nil on a gauge's first reading, and where it is unknown
	Source   string // the source's name, as tracer/counter has them
	DeviceID *int32 // the accelerator, as its driver numbers them; nil for others
	Device   string // cpu0, nvme0n1, eth0, mlx5_0:1, a GPU's UUID; "" for the whole machine
	Scope    string // the cgroup or network namespace; "" for the whole machine
	PID      *int32 // the process, where the driver tells them apart; the job's only one in a cgroup
	Name     string
	Kind     CounterKind
	Unit     string
	Value    float64
}
