package report

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// block has the agents of hosts a and b find, each for itself, that the job of four ranks
// is blocked, rank 2 being the one that has not come.
func block(t *testing.T, s store.Store, name string, at int64) {
	t.Helper()
	for i, host := range []string{"a", "b"} {
		r := &hang.Recording{Host: host, Waits: map[hang.Of]hang.Wait{}, Threads: map[int64][]hang.Thread{}}
		for rank := int64(2 * i); rank < int64(2*i+2); rank++ {
			pid, last := 100+rank, int64(7)
			if rank == 2 {
				last = 6
				r.Threads[pid] = []hang.Thread{{TIDs: []int64{pid}, Main: true, Frames: []hang.Frame{{Kind: "python", Function: "load", File: "data.py",
					Line: 3}}}}
			} else {
				r.Waits[hang.Of{Group: 5, PID: pid}] = hang.Wait{Number: 7, Seconds: 4, Collective: "nccl::allreduce"}
			}
			r.Members = append(r.Members, hang.Member{Group: 5, Name: "default_pg", PID: pid, Rank: rank, Ranks: 4, Number: &last,
				Collective: "nccl::allreduce"})
			r.Processes = append(r.Processes, hang.Known{PID: pid, Rank: &rank})
		}
		v := hang.Judge(r)
		if err := store.PutHang(t.Context(), s, store.Hang{Job: name, Tool: "1", At: at + int64(i)*1e9, Since: at - 4e9, Verdict: &v,
			Recording: r}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAJobThatIsBlockedIsSaidToBe(t *testing.T) {
	root := filepath.Dir(job(t, "train").Root())
	s, err := store.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	const at = firstBegin + 20e9
	block(t, s, "train", at)
	r := built(t, root)
	const found = "of 4 ranks 3 wait in collective 7 (nccl::allreduce), for 4.0 s when that was written; rank 2 has not come (at data.py:3 load)"
	if want := "The job is blocked since 2023-11-14 22:13:36Z: " + found + ". Before that: Rank 2 spends"; !strings.HasPrefix(r.Verdict,
		want) {
		t.Errorf("%s\nwant %s", r.Verdict, want)
	}
	if len(r.Hangs) != 1 || len(r.Hangs[0].Hosts) != 2 || r.Hangs[0].Kind != hang.KindMissing || r.Hangs[0].AtNS != at+1e9 {
		t.Errorf("%+v", r.Hangs)
	}
	// One that has gone on is a note, and so are those of long before what is compared.
	b := store.Batch{Session: "s", Job: "train", Host: "a", Patterns: []pattern.Pattern{{Host: "a", PID: 100, BeginNS: at + 5e9,
		EndNS: at + 6e9, ObservedNS: 1e9}},
		Steps: []pattern.Step{{PID: 100, BeginNS: at + 5e9, PeriodNS: 100e6}}}
	if _, err := store.Send(t.Context(), s, b); err != nil {
		t.Fatal(err)
	}
	r = built(t, root)
	if strings.Contains(r.Verdict, "blocked") || len(r.Notes) == 0 || !strings.Contains(strings.Join(r.Notes, "\n"),
		"ranks were blocked from 2023-11-14 22:13:36Z on: "+found) {
		t.Errorf("%s\n%q", r.Verdict, r.Notes)
	}
}
