package numbers

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
)

const noLoader = "no data loader of PyTorch was seen"

// loading is what input costs: exposed, what the training thread spends in it; and all of it, divided into storage,
// decoding and copies, of all threads.
func (m *measuring) loading() error {
	if m.noSteps != "" {
		for _, name := range []string{IO, ExposedIO, Storage, DecodeTime, CopyTime, ComputeThroughput} {
			m.add(missing(name, m.noSteps))
		}
		return nil
	}
	exposed, err := m.exposedIO()
	if err != nil {
		return err
	}
	m.add(exposed)
	if err := m.compute(exposed); err != nil {
		return err
	}
	storage, storageCPU, err := m.storage()
	if err != nil {
		return err
	}
	decode, err := m.decoding(storageCPU)
	if err != nil {
		return err
	}
	copies, err := m.copies()
	if err != nil {
		return err
	}
	sum := 0.0
	for _, n := range []Number{storage, decode, copies} {
		m.add(n)
		if n.Value != nil {
			sum += *n.Value
		}
	}
	if storage.Value == nil && decode.Value == nil {
		m.add(missing(IO, decode.Why))
		return nil
	}
	m.add(measured(IO, sum, len(m.settled), "steps"))
	return nil
}

// exposedSQL is the time of the training thread in its loader, in long reads and writes outside of it, and in copies to
// devices, by step.
const exposedSQL = `
SELECT step_id, coalesce(sum(least(s.ts_ns + s.duration_ns, t.until_ns) - s.ts_ns), 0)::BIGINT, count(s.span_id) FILTER (s.layer = 'scope')
FROM timeline_step t LEFT JOIN span s ON s.pid = t.pid AND s.tid = t.tid AND s.ts_ns >= t.begin_ns AND s.ts_ns < t.until_ns
AND s.duration_ns >= 0
  AND (s.layer = 'scope' AND s.name LIKE 'enumerate(DataLoader)#%%'
    OR s.layer = 'io' AND s.category = 'file' AND s.parent_id IS NULL
    OR s.layer = 'runtime' AND s.category = 'copy' AND s.direction = 'host_to_device')
WHERE t.pid = %d AND t.tid = %d GROUP BY step_id`

// exposedIO is by the loader's calls, each of which is seen.
func (m *measuring) exposedIO() (Number, error) {
	took, draws := map[int64]int64{}, int64(0)
	err := m.db.Each(m.ctx, fmt.Sprintf(exposedSQL, m.loop.PID, m.loop.TID), func(v []driver.Value) error {
		id, _ := v[0].(int64)
		took[id], _ = v[1].(int64)
		n, _ := v[2].(int64)
		draws += n
		return nil
	})
	if err != nil {
		return Number{}, err
	}
	if draws == 0 {
		return m.exposedBySamples()
	}
	var each []float64
	for _, s := range m.settled {
		// A step without a draw ran before the loader's calls were seen.
		if strings.Contains(s.Anchors, drawOfNothing) {
			each = append(each, float64(took[s.ID])/1e6)
		}
	}
	if len(each) == 0 { // the draws belong to no step that counts
		return m.exposedBySamples()
	}
	return meanOf(ExposedIO, each, "steps"), nil
}

// loaderFrames are the stacks with code of PyTorch's data loader on them.
const loaderFrames = `(SELECT stack_id FROM stack
	WHERE len(list_filter(frames, f -> f.kind = 'python' AND contains(f.file, 'torch/utils/data/'))) > 0)`

// leastWhole is the share of the training thread's sampled time of which the whole stack has to be known before samples
// tell what is below the loader's code.
const leastWhole = 0.9

// exposedBySamples is where the loader's calls leave no scope, as before PyTorch 2: what samples and waits of the training
// thread show below the loader's code.
func (m *measuring) exposedBySamples() (Number, error) {
	var ns, whole sql.NullFloat64
	var samples int64
	err := m.db.Row(m.ctx, `SELECT sum(took) FILTER (loads), count(*) FILTER (loads), sum(took) FILTER (loads OR whole) / greatest(sum(took),
		1) FROM (
		SELECT least(s.ts_ns + s.weight_ns, ?) - s.ts_ns AS took,
		coalesce(s.stack_id IN `+loaderFrames+`, false) AS loads, coalesce(k.status = 'complete', false) AS whole
		FROM sample s LEFT JOIN stack k USING (session_id, stack_id) WHERE s.pid = ? AND s.tid = ? AND s.ts_ns >= ? AND s.ts_ns < ?)`,
		[]any{m.until, m.loop.PID, m.loop.TID, m.from, m.until}, &ns, &samples, &whole)
	if err != nil {
		return Number{}, err
	}
	if whole.Valid && whole.Float64 < leastWhole {
		return missing(ExposedIO, fmt.Sprintf("this loader leaves no scopes, and the stacks of %.0f %% of the training thread's time "+
			"are incomplete",
			100*(1-whole.Float64))), nil
	}
	if samples == 0 {
		return m.exposedReads()
	}
	n := measured(ExposedIO, ns.Float64/1e6/float64(len(m.settled)), int(samples), "samples")
	n.Why = "by samples, since this PyTorch's loader leaves no scopes: without waits below the threshold"
	return n, nil
}

// exposedReads is of jobs without a data loader: all that the training thread itself reads and writes.
func (m *measuring) exposedReads() (Number, error) {
	var ns sql.NullFloat64
	err := m.db.Row(m.ctx, `SELECT sum(`+inWindow+` * coalesce(duration_ns, waited_ns)) FROM io
		WHERE pid = ? AND tid = ? AND kind = 'file' AND operation IN ('read', 'write', 'sync', 'fault')`,
		m.windowed(m.loop.PID, m.loop.TID), &ns)
	if err != nil {
		return Number{}, err
	}
	n := measured(ExposedIO, ns.Float64/1e6/float64(len(m.settled)), len(m.settled), "steps")
	n.Why = noLoader + ": it is what the training thread reads and writes by system calls"
	return n, nil
}

// inWindow is the part of an io row that lies in the window: a row is of calls of about a second.
const inWindow = `greatest(0, least(end_ns, ?) - greatest(ts_ns, ?)) / greatest(end_ns - ts_ns, 1)`

func (m *measuring) windowed(more ...any) []any { return append([]any{m.until, m.from}, more...) }

// compute is the throughput that the job would have if its data were there when a step needs them.
func (m *measuring) compute(exposed Number) error {
	batch, step := value(m.found, Batch), value(m.found, StepTime)
	switch {
	case batch == nil:
		m.add(missing(ComputeThroughput, "how many samples a step has is not known: give --batch"))
	case exposed.Value == nil || step == nil:
		m.add(missing(ComputeThroughput, exposed.Why))
	case *step <= *exposed.Value:
		m.add(missing(ComputeThroughput, "all of a step is spent waiting for data"))
	default:
		rest := m.withoutIO(exposed)
		m.add(rest.inverse(ComputeThroughput, 1000**batch))
	}
	return nil
}

// withoutIO is the step's length less its exposed input.
func (m *measuring) withoutIO(exposed Number) Number {
	step, _ := Find(m.found, StepTime)
	n := measured("", *step.Value-*exposed.Value, step.Of, "steps")
	if step.Lo != nil {
		// The two vary together where the loader is what varies; the wider of both is not too narrow.
		half := *step.Hi - *step.Value
		if exposed.Lo != nil {
			half = max(half, *exposed.Hi-*exposed.Value)
		}
		n = n.within(*n.Value-half, *n.Value+half)
	}
	return n
}

// theirs are the processes that load: the training process and the loader's workers.
const theirs = `(pid = ? OR pid IN (SELECT pid FROM thread WHERE role = 'dataloader_worker'))`

// storage is what files take, by system calls and page faults; cpu is what of it was spent on a CPU.
func (m *measuring) storage() (n Number, cpuMS float64, err error) {
	var took, waited, rows sql.NullFloat64
	err = m.db.Row(m.ctx, `SELECT sum(part * coalesce(duration_ns, waited_ns)), sum(part * coalesce(waited_ns, 0)), count(*)
		FROM (SELECT *, `+inWindow+` AS part FROM io WHERE kind = 'file' AND operation IN ('read', 'fault') AND `+theirs+`)`,
		m.windowed(m.loop.PID), &took, &waited, &rows)
	if err != nil {
		return n, 0, err
	}
	var recorded bool
	if err := m.db.Row(m.ctx, "SELECT EXISTS (FROM io)", nil, &recorded); err != nil {
		return n, 0, err
	}
	if !recorded {
		return missing(Storage, "reads were not recorded: record without --no-io"), 0, nil
	}
	steps := float64(len(m.settled))
	return measured(Storage, took.Float64/1e6/steps, len(m.settled), "steps"), (took.Float64 - waited.Float64) / 1e6 / steps, nil
}

// decodingSQL is the CPU time of the loader: of its workers, and of the training thread below the loader's code.
const decodingSQL = `
SELECT coalesce(sum(weight_ns), 0)::BIGINT, count(*) FROM sample
WHERE state = 'on_cpu' AND ts_ns BETWEEN %d AND %d AND (
  pid IN (SELECT pid FROM thread WHERE role = 'dataloader_worker')
  OR pid = %d AND tid = %d AND stack_id IN ` + loaderFrames + `)`

func (m *measuring) decoding(storageCPU float64) (Number, error) {
	var ns, samples, looks int64
	err := m.db.Row(m.ctx, fmt.Sprintf(decodingSQL, m.from, m.until, m.loop.PID, m.loop.TID), nil, &ns, &samples)
	if err != nil {
		return Number{}, err
	}
	if err := m.db.Row(m.ctx, "SELECT count(*) FROM sample WHERE state = 'on_cpu'", nil, &looks); err != nil {
		return Number{}, err
	}
	switch {
	case looks == 0:
		return missing(DecodeTime, "no samples were taken: record without --frequency 0"), nil
	case samples == 0:
		return missing(DecodeTime, noLoader+" on a CPU"), nil
	}
	n := measured(DecodeTime, max(0, float64(ns)/1e6/float64(len(m.settled))-storageCPU), int(samples), "samples")
	return n, nil
}

// copies are those to devices, as long as the host's calls take.
func (m *measuring) copies() (Number, error) {
	var ns sql.NullFloat64
	var devices int64
	err := m.db.Row(m.ctx, `SELECT sum(weight * coalesce((device_time_lo_ns + device_time_hi_ns) / 2, duration_ns))
		FILTER (category = 'copy' AND direction = 'host_to_device' AND ts_ns BETWEEN ? AND ?), count(*) FILTER (category IN ('launch', 'copy'))
		FROM span WHERE layer = 'runtime'`, []any{m.from, m.until}, &ns, &devices)
	if err != nil {
		return Number{}, err
	}
	if devices == 0 {
		return missing(CopyTime, "the job used no device"), nil
	}
	return measured(CopyTime, ns.Float64/1e6/float64(len(m.settled)), len(m.settled), "steps"), nil
}
