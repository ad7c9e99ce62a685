package e2e

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// A ring of 64 KiB holds less than a millisecond of this job, and the reader
// looks every ten: most of it is lost, and every loss must be on record.
func TestNothingIsLostInSilence(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		whole := harness.RecordReady(t, harness.Unbudgeted, training(v, "mlp")...)
		whole.Lossless(t)
		r := harness.RecordReady(t, append([]string{"--buffer-size", "64KiB"}, harness.Unbudgeted...), training(v, "mlp")...)

		// Per function: hits = rows + lost; and the hits are those of the run
		// whose buffer was large enough.
		hits := func(r *harness.Recording) map[string]int64 {
			return r.Counts(t, "SELECT symbol, hits FROM probe WHERE hits > 0 AND library LIKE '%%libtorch%%' OR library LIKE '%%libc10%%'")
		}
		harness.SameCounts(t, "hits", hits(r), hits(whole))
		for _, layer := range []string{"op", "autograd", "scope", "collective"} {
			rows := r.Number(t, "SELECT count(*) FROM span WHERE layer = '%s'", layer)
			lost := r.Number(t, "SELECT sum(lost) FROM probe WHERE layer = '%s'", layer)
			did := whole.Number(t, "SELECT count(*) FROM span WHERE layer = '%s'", layer)
			if rows+lost != did {
				t.Errorf("layer %s: %d rows and %d lost, but the job did %d", layer, rows, lost, did)
			}
			t.Logf("layer %s: %d written, %d lost", layer, rows, lost)
		}
		rows, lost := r.Number(t, "SELECT count(*) FROM memory"),
			r.Number(t, "SELECT sum(lost) FROM probe WHERE symbol LIKE '%%MemoryReporter%%' OR symbol LIKE '%%free_cpu%%'")
		if did := whole.Number(t, "SELECT count(*) FROM memory"); rows+lost != did {
			t.Errorf("memory: %d rows and %d lost, but the job did %d", rows, lost, did)
		}

		byProbe := r.Number(t, "SELECT sum(lost) FROM probe")
		byReason := r.Counts(t, "SELECT source, sum(count) FROM warning WHERE kind = 'lost' GROUP BY ALL")
		if byProbe == 0 || byProbe != sum(byReason) {
			t.Errorf("lost by probe %d, by reason %v", byProbe, byReason)
		}
		t.Logf("by reason: %v", byReason)
	})
}
