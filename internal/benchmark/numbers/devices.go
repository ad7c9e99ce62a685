package numbers

import (
	"database/sql"
)

// devices are power, utilisation and memory.
func (m *measuring) devices() error {
	for _, part := range []func() error{m.power, m.utilisation, m.memory, m.cost} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// whenSQL limits counters to the window, if there are steps.
func (m *measuring) when() (string, []any) {
	if m.noSteps != "" {
		return "true", nil
	}
	return "ts_ns BETWEEN ? AND ?", []any{m.from, m.until}
}

// power is that of the accelerators where their driver says it, else of the processors.
func (m *measuring) power() error {
	when, args := m.when()
	var watts, joules sql.NullFloat64
	var readings, energies int64
	err := m.db.Row(m.ctx, `SELECT sum(w), coalesce(sum(n), 0)::BIGINT FROM (SELECT avg(value) AS w, count(*) AS n FROM counter
		WHERE unit = 'watts' AND `+when+` GROUP BY source, device, device_id, name)`, args, &watts, &readings)
	if err != nil {
		return err
	}
	err = m.db.Row(m.ctx, `SELECT sum(w), coalesce(sum(n), 0)::BIGINT FROM (SELECT 1e9 * sum(value) / sum(period_ns) AS w, count(*) AS n
		FROM counter
		WHERE unit = 'joules' AND NOT contains(coalesce(device, ''), '/') AND period_ns > 0
		AND `+when+` GROUP BY source, device, name)`, args, &joules, &energies)
	if err != nil {
		return err
	}
	n := measured(Power, watts.Float64, int(readings), "readings")
	switch {
	case watts.Valid:
	case joules.Valid:
		n = measured(Power, joules.Float64, int(energies), "readings")
	default:
		m.add(missing(Power, "neither a device nor the processor tells its power here"))
		m.add(missing(EnergyPerSample, "power is not known"))
		return nil
	}
	m.add(n)
	throughput := value(m.found, Throughput)
	if throughput == nil {
		m.add(missing(EnergyPerSample, "throughput is not known"))
		return nil
	}
	m.add(measured(EnergyPerSample, *n.Value / *throughput, n.Of, "readings"))
	return nil
}

func (m *measuring) utilisation() error {
	when, args := m.when()
	var cpu, gpu sql.NullFloat64
	var cpus, gpus int64
	err := m.db.Row(m.ctx, `SELECT 100 * sum(value) FILTER (name NOT IN ('cpu_idle', 'cpu_iowait')) / sum(value),
		count(*) FILTER (name = 'cpu_user') FROM counter WHERE source = 'cpu' AND `+when, args, &cpu, &cpus)
	if err != nil {
		return err
	}
	if cpu.Valid {
		m.add(measured(CPUUtilisation, cpu.Float64, int(cpus), "readings"))
	} else {
		m.add(missing(CPUUtilisation, "the machine's counters were not read for as long as the steps took"))
	}
	err = m.db.Row(m.ctx, "SELECT avg(value), count(*) FROM counter WHERE name = 'gpu_busy' AND "+when, args, &gpu, &gpus)
	if err != nil {
		return err
	}
	if gpu.Valid {
		m.add(measured(DeviceUtilisation, gpu.Float64, int(gpus), "readings"))
	} else {
		m.add(missing(DeviceUtilisation, "no driver tells how busy a device is"))
	}
	return nil
}

const mebibyte = 1 << 20

func (m *measuring) memory() error {
	if peak := m.options.HostMemoryMiB; peak != nil {
		m.add(measured(HostMemory, *peak, 1, "runs"))
	} else {
		m.add(missing(HostMemory, "nobody looked while the job ran"))
	}
	var bytes sql.NullInt64
	err := m.db.Row(m.ctx, "SELECT sum(peak)::BIGINT FROM (SELECT max(total_reserved_bytes) AS peak FROM memory WHERE space = 'device' "+
		"GROUP BY pid, device_id)", nil, &bytes)
	if err != nil {
		return err
	}
	if bytes.Valid && bytes.Int64 > 0 {
		m.add(measured(DeviceMemory, float64(bytes.Int64)/mebibyte, 1, "runs"))
	} else {
		m.add(missing(DeviceMemory, "no allocation on a device was recorded"))
	}
	return nil
}

// cost is what the recording took of the job's time.
func (m *measuring) cost() error {
	var percent sql.NullFloat64
	if err := m.db.Row(m.ctx, "SELECT max(overhead_percent) FROM session", nil, &percent); err != nil {
		return err
	}
	if percent.Valid {
		m.add(measured(Overhead, percent.Float64, 1, "runs"))
	} else {
		m.add(missing(Overhead, "the recording did not end properly"))
	}
	return nil
}
