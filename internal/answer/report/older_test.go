package report

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// TestADatasetOfAnOlderVersionIsExplained: testdata/schema-1.1.0 was written by the writer of commit a8fe040, by the loop
// of this package's tests with 280 samples. It has no thread.cpu_ns: samples times their period stand in for it.
func TestADatasetOfAnOlderVersionIsExplained(t *testing.T) {
	db, err := dataset.Open("testdata/schema-1.1.0")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r, err := Build(context.Background(), db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Explanations) == 0 || r.Shares == nil || !strings.Contains(r.Verdict, "tokenize (train.py:17)") {
		t.Fatalf("%q %+v", r.Verdict, r.Explanations)
	}
	// Of 2.8 s on a CPU three quarters are at that line.
	if share := r.Explanations[0].Explained; math.Abs(share-0.75) > 0.01 {
		t.Errorf("it explains %g of the time", share)
	}
	sum := 0.0
	for _, p := range r.Phases {
		sum += p.Percent
	}
	if math.Abs(sum-100) > 1e-6 {
		t.Errorf("the phases sum to %g %%", sum)
	}
}
