package dataset_test

import (
	"errors"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// TestAPartIsAllThatIsAskedFrom, by SQL and by scans, and everything is there again after it.
func TestAPartIsAllThatIsAskedFrom(t *testing.T) {
	var jobs []*scripted.Job
	for rank := range 2 {
		j := scripted.New()
		j.PID, j.TID = int32(100+rank), int32(100+rank)
		for i := range 10 {
			j.Op("aten::mm", 1000)
			j.Sample("on_cpu", 1000, scripted.Python("f", "/home/me/a.py", int32(i+1)))
			j.Allocate("driver", 64)
		}
		jobs = append(jobs, j)
	}
	db, err := dataset.Open(scripted.Write(t, jobs...))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	first := scripted.New().Now
	rank := 1
	for _, c := range []struct {
		part  dataset.Part
		spans int64 // as many samples and allocations, which begin when the calls end
	}{
		{dataset.Part{}, 20},
		{dataset.Part{Rank: &rank}, 10},
		{dataset.Part{From: first + 5000}, 10},
		{dataset.Part{From: first + 2000, Until: first + 5000}, 6},
		{dataset.Part{Rank: &rank, Until: first + 3000}, 3},
		{dataset.Part{}, 20},
	} {
		if err := db.Restrict(t.Context(), c.part); err != nil {
			t.Fatal(err)
		}
		var spans, scanned, samples, scannedSamples, stacks, memory, estimated int64
		err := db.Row(t.Context(), `SELECT (SELECT count(*) FROM span), (SELECT count(*) FROM sample),
			(SELECT count(DISTINCT stack_id) FROM stack), (SELECT count(*) FROM memory),
			(SELECT coalesce(sum(recorded), 0)::BIGINT FROM operator_estimate)`, nil, &spans, &samples, &stacks, &memory, &estimated)
		if err != nil {
			t.Fatal(err)
		}
		for table, n := range map[string]*int64{"span": &scanned, "sample": &scannedSamples} {
			scan := dataset.Scan{Table: table, Columns: []string{"ts_ns"}}
			if err := db.Scan(t.Context(), scan, func(b *dataset.Batch) error { *n += int64(b.Rows); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if spans != c.spans || scanned != spans || samples != scannedSamples || memory != samples || samples > spans+2 || samples < spans-2 ||
			stacks > samples || stacks < samples/2 {
			t.Errorf("%+v: %d spans, %d scanned, want %d; %d samples, %d scanned, %d stacks, %d of memory", c.part, spans, scanned, c.spans, samples,
				scannedSamples, stacks, memory)
		}
		if !c.part.Windowed() && c.part.Rank == nil && estimated != 20 {
			t.Errorf("the view of estimates has %d rows", estimated)
		}
	}
	other := 7
	if err := db.Restrict(t.Context(), dataset.Part{Rank: &other}); !errors.Is(err, dataset.ErrNoRank) ||
		err.Error() != "there is no rank 7: the dataset has 0, 1" {
		t.Errorf("%v", err)
	}
}
