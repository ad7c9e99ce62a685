package e2e

import "testing"

// A ring of 64 KiB holds less than a millisecond of this job, and the reader
// looks every ten: most of it is lost, and every loss must be on record.
func TestNothingIsLostInSilence(t *testing.T) {
	besideEachTorch(t, counting, func(t *testing.T, v torch) {
		whole := attachedRun(t, unbudgeted, v.training("mlp")...)
		whole.lossless(t)
		r := attachedRun(t, append([]string{"--buffer-size", "64KiB"}, unbudgeted...), v.training("mlp")...)

		// Per function: hits = rows + lost; and the hits are those of the run
		// whose buffer was large enough.
		hits := func(r *recording) map[string]int64 {
			return r.counts(t, "SELECT symbol, hits FROM probe WHERE hits > 0 AND library LIKE '%%libtorch%%' OR library LIKE '%%libc10%%'")
		}
		sameCounts(t, "hits", hits(r), hits(whole))
		for _, layer := range []string{"op", "autograd", "scope", "collective"} {
			rows := r.number(t, "SELECT count(*) FROM span WHERE layer = '%s'", layer)
			lost := r.number(t, "SELECT sum(lost) FROM probe WHERE layer = '%s'", layer)
			did := whole.number(t, "SELECT count(*) FROM span WHERE layer = '%s'", layer)
			if rows+lost != did {
				t.Errorf("layer %s: %d rows and %d lost, but the job did %d", layer, rows, lost, did)
			}
			t.Logf("layer %s: %d written, %d lost", layer, rows, lost)
		}
		rows, lost := r.number(t, "SELECT count(*) FROM memory"), r.number(t, "SELECT sum(lost) FROM probe WHERE symbol LIKE '%%MemoryReporter%%'")
		if did := whole.number(t, "SELECT count(*) FROM memory"); rows+lost != did {
			t.Errorf("memory: %d rows and %d lost, but the job did %d", rows, lost, did)
		}

		byProbe := r.number(t, "SELECT sum(lost) FROM probe")
		byReason := r.counts(t, "SELECT source, sum(count) FROM warning WHERE kind = 'lost' GROUP BY ALL")
		if byProbe == 0 || byProbe != sum(byReason) {
			t.Errorf("lost by probe %d, by reason %v", byProbe, byReason)
		}
		t.Logf("by reason: %v", byReason)
	})
}

// attachedRun records a job from the moment it is ready to its end: every probe
// is in before, so that two such recordings are of the same calls.
func attachedRun(t *testing.T, flags []string, argv ...string) *recording {
	t.Helper()
	job := startJob(t, argv...)
	tracing := attach(t, flags, job.Process.Pid)
	job.goOn(t)
	told := job.finishJob(t)
	r := tracing.finish(t)
	r.truth = told
	return r
}
