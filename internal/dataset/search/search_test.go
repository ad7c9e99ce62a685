package search

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// TestTimesOfAPartAreSinceTheRecordingsFirstRow as those of the whole are.
func TestTimesOfAPartAreSinceTheRecordingsFirstRow(t *testing.T) {
	j := scripted.New()
	begin := j.Now
	for range 3 {
		j.Op("aten::mm", 1_000_000)
	}
	db, err := dataset.Open(scripted.Write(t, j))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Restrict(t.Context(), dataset.Part{From: begin + 1}); err != nil {
		t.Fatal(err)
	}
	hits, err := Run(t.Context(), db, "mm")
	if err != nil || len(hits) != 1 || hits[0].Count != 2 || *hits[0].FirstMS != 1 {
		t.Errorf("%+v, %v", hits, err)
	}
}
