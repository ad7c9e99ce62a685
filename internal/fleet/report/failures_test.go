package report

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// fails has agents see that rank 2 of a job finds no room for memory, and dies of it.
func fails(t *testing.T, s store.Store, name string, at int64) {
	t.Helper()
	rank := int32(2)
	for _, f := range []store.FailureRow{
		{At: at, Kind: "out_of_memory", Sentence: "rank 2 (process 102) found no room for 64 bytes of host memory", Place: "train.py:3 (step)",
			Dump: "/spool/x-failed"},
		{At: at + 1e9, Kind: "died", Sentence: "rank 2 (process 102) exited with code 1"},
	} {
		f.Job, f.Host, f.PID, f.Rank, f.Tool = name, "b", 102, &rank, "1"
		if err := store.PutFailures(t.Context(), s, []store.FailureRow{f}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAJobThatFailedIsSaidToHave(t *testing.T) {
	root := filepath.Dir(job(t, "train").Root())
	s, err := store.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	const at = firstBegin + 20e9
	fails(t, s, "train", at)
	fails(t, s, "another", at)
	r := built(t, root)
	const found = "rank 2 (process 102) found no room for 64 bytes of host memory, at train.py:3 (step); its last moments are on b in /spool/x-failed"
	if want := "At 2023-11-14 22:13:40Z " + found + ". No step of the job was seen since. Rank 2 spends"; !strings.HasPrefix(r.Verdict, want) {
		t.Errorf("%s\nwant %s", r.Verdict, want)
	}
	if len(r.Failures) != 2 || r.Failures[0].Kind != "died" || *r.Failures[1].Rank != 2 || r.Failures[1].StepsAfter {
		t.Errorf("%+v", r.Failures)
	}
	notes := strings.Join(r.Notes, "\n")
	if !strings.Contains(notes, "at 2023-11-14 22:13:41Z rank 2 (process 102) exited with code 1") || !strings.Contains(notes, found) {
		t.Errorf("%q", r.Notes)
	}
	// One that was survived is a note.
	b := store.Batch{Session: "s", Job: "train", Host: "a", Patterns: []pattern.Pattern{{Host: "a", PID: 100, BeginNS: at + 5e9,
		EndNS: at + 6e9, ObservedNS: 1e9}},
		Steps: []pattern.Step{{PID: 100, BeginNS: at + 5e9, PeriodNS: 100e6}}}
	if _, err := store.Send(t.Context(), s, b); err != nil {
		t.Fatal(err)
	}
	r = built(t, root)
	if strings.Contains(r.Verdict, "no room") || !strings.Contains(strings.Join(r.Notes, "\n"), found) || !r.Failures[1].StepsAfter {
		t.Errorf("%s\n%q", r.Verdict, r.Notes)
	}
}
