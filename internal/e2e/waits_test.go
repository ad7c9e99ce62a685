package e2e

import (
	"math"
	"testing"
)

// TestWaitsOutsideOfSystemCalls: for pages, for the CPU, and stopped.
func TestWaitsOutsideOfSystemCalls(t *testing.T) {
	needKernel(t)
	r := sampled(t, nil, "/usr/bin/python3", "../../testdata/jobs/waits.py")
	r.lossless(t)
	t.Run("pages", r.waitsForPages)
	t.Run("CPU", r.waitsForTheCPU)
	t.Run("stopped", r.stops)
}

// waitsForPages: a thread that waits for a page sleeps until it comes. Where others
// want its CPU it may be preempted when it has asked for the page: then it sleeps
// later and not so long, or not at all.
func (r *recording) waitsForPages(t *testing.T) {
	offset := r.number(t, "SELECT clock_offset_ns FROM session")
	rows := r.rows(t, `SELECT ts_ns, weight_ns, syscall IS NULL, holds_gil, status, [f.function FOR f IN frames IF f.kind = 'native'][1], cause
		FROM sample JOIN stack USING (stack_id) WHERE state = 'off_cpu' AND cause IN ('fault', 'preempted') AND `+pythonTop+` = 'touch' AND `+r.region(t)+` ORDER BY ts_ns`)
	slept, whole := 0, 0
	for i, wait := range r.truth.Sleeps {
		comes, faults, preempted := wait[0]+r.truth.SleepNS*99/100, 0, int64(0)
		for _, row := range rows {
			begin, took := integer(t, row[0])-offset, integer(t, row[1])
			if begin < wait[0] || begin > wait[1] {
				continue
			}
			if row[6] == "preempted" {
				preempted += took
				continue
			}
			faults++
			// The page comes some time after the fault; the thread may run still later.
			if begin+took > wait[1] || begin+took < comes {
				t.Errorf("page %d: recorded [%d, +%d], the job says [%d, +%d]", i, begin, took, wait[0], wait[1]-wait[0])
			}
			if took >= r.truth.SleepNS*99/100 {
				whole++
			}
			if row[2] != true || row[3] != false || row[4] != "complete" {
				t.Errorf("page %d: no system call %v, holds the GIL %v, stack %v from %v", i, row[2], row[3], row[4], row[5])
			}
		}
		if slept += faults; faults > 1 || faults == 0 && preempted < r.truth.SleepNS/2 {
			t.Errorf("page %d: %d waits for it, %d ns preempted", i, faults, preempted)
		}
	}
	if all := len(r.truth.Sleeps); whole < all*3/4 {
		t.Errorf("of %d waits for %d pages %d are as long as a page takes", slept, all, whole)
	}
	if n := r.number(t, "SELECT count(*) FROM sample JOIN stack USING (stack_id) WHERE cause = 'fault' AND "+pythonTop+" = 'touch' AND "+r.region(t)); n != int64(slept) {
		t.Errorf("%d waits in touch, %d of them for its pages", n, slept)
	}
}

// waitsForTheCPU: the kernel counts how long the thread was ready and did not
// run, of which the recording has what was longer than its threshold, 1 ms.
func (r *recording) waitsForTheCPU(t *testing.T) {
	offset := r.number(t, "SELECT clock_offset_ns FROM session")
	rows := r.rows(t, `SELECT sum(weight_ns)::BIGINT, count(*), count(stack_id), count(*) FILTER (status = 'complete' AND `+pythonTop+` = 'spin')
		FROM sample LEFT JOIN stack USING (stack_id) WHERE cause = 'preempted' AND tid = %d AND ts_ns - %d BETWEEN %d AND %d`,
		r.truth.PID, offset, r.truth.Rivalry[0], r.truth.Rivalry[1])
	total, all, with, spinning := integer(t, rows[0][0]), integer(t, rows[0][1]), integer(t, rows[0][2]), integer(t, rows[0][3])
	t.Logf("%d ms in %d waits of the %d ms that the kernel counts; %d have a stack, %d in spin", total/1e6, all, r.truth.QueuedNS/1e6, with, spinning)
	if r.truth.QueuedNS < 2e8 {
		t.Fatalf("the job waited for its CPU for %d ms only", r.truth.QueuedNS/1e6)
	}
	if math.Abs(float64(total-r.truth.QueuedNS)) > 0.1*float64(r.truth.QueuedNS) {
		t.Errorf("%d ms waited for the CPU, the kernel counts %d", total/1e6, r.truth.QueuedNS/1e6)
	}
	if with < all/2 || spinning < with*9/10 {
		t.Errorf("%d of %d waits for the CPU have a stack, %d in spin", with, all, spinning)
	}
}

func (r *recording) stops(t *testing.T) {
	rows := r.rows(t, `SELECT weight_ns, status, `+pythonTop+`, syscall IS NULL FROM sample JOIN stack USING (stack_id)
		WHERE cause = 'stopped' AND tid = pid AND weight_ns > `+"50000000 AND "+r.region(t))
	if len(rows) != 1 {
		t.Fatalf("%d stops, the job was stopped once: %v", len(rows), rows)
	}
	took := integer(t, rows[0][0])
	if took < r.truth.StoppedNS || rows[0][1] != "complete" || rows[0][2] != "spin" || rows[0][3] != true {
		t.Errorf("stopped for %d ns, stack %v in %v; the job was stopped for %d in spin", took, rows[0][1], rows[0][2], r.truth.StoppedNS)
	}
}
