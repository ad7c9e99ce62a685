package e2e

import "testing"

// recordedBalance sums the allocator events of a recording's region.
func (r *recording) recordedBalance(t *testing.T) balance {
	t.Helper()
	row := r.rows(t, `
		WITH events AS (
			SELECT action, bytes, sum(CASE action WHEN 'alloc' THEN bytes ELSE -bytes END) OVER (ORDER BY ts_ns ROWS UNBOUNDED PRECEDING) AS live
			FROM memory WHERE space = 'host' AND %s)
		SELECT count(*) FILTER (action = 'alloc'), count(*) FILTER (action = 'free'),
			sum(bytes) FILTER (action = 'alloc'), sum(bytes) FILTER (action = 'free'), max(live) FROM events`, r.region(t))[0]
	b := balance{
		Allocations: integer(t, row[0]), Frees: integer(t, row[1]), BytesAllocated: integer(t, row[2]),
		BytesFreed: integer(t, row[3]), PeakBytes: integer(t, row[4]),
	}
	b.LiveAtEnd = b.BytesAllocated - b.BytesFreed
	return b
}

func TestAllocationsBalance(t *testing.T) {
	besideEachTorch(t, counting, func(t *testing.T, v torch) {
		known := mustRecord(t, unbudgeted, v.job("allocations.py", "--what", "known", "--rounds", "5")...)
		known.lossless(t)
		if got := known.recordedBalance(t); known.truth.Memory == nil || got != *known.truth.Memory {
			t.Errorf("recorded %+v, want, by construction, %+v", got, known.truth.Memory)
		}
		train := v.job("allocations.py", "--what", "train", "--rounds", "5")
		trained := mustRecord(t, unbudgeted, train...)
		trained.lossless(t)
		if got, want := trained.recordedBalance(t), profile[balance](t, train...); got != want || got.Allocations == 0 {
			t.Errorf("recorded %+v, want, as torch.profiler counts, %+v", got, want)
		}
		if n := trained.number(t, "SELECT count(*) FROM memory WHERE action = 'free' AND bytes IS NULL"); n > 0 {
			t.Errorf("%d frees without a size, in a job that was recorded from its first instruction", n)
		}
	})
}
