package fleet

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testcommand"
)

// nodeHang is what a node knew of some ranks of a group of three: those with a number above
// 0 wait in that collective, the others had asked for the one before and stand elsewhere.
func nodeHang(host string, waits map[int64]int64) *hang.Recording {
	r := &hang.Recording{Host: host, Waits: map[hang.Of]hang.Wait{}, Threads: map[int64][]hang.Thread{}}
	for rank := range int64(3) {
		number, here := waits[rank]
		if !here {
			continue
		}
		pid, last, file, still := 100+rank, int64(41), "cleanup.py", 4.5
		if number > 0 {
			last, file = number, "train.py"
			r.Waits[hang.Of{Group: 77, PID: pid}] = hang.Wait{Number: number, Seconds: 5, Collective: "gloo::allreduce"}
		}
		r.Members = append(r.Members, hang.Member{Group: 77, Name: "default_pg", PID: pid, Rank: rank, Ranks: 3, Number: &last,
			Collective: "gloo::allreduce"})
		r.Processes = append(r.Processes, hang.Known{PID: pid, Rank: &rank})
		r.Threads[pid] = []hang.Thread{{TIDs: []int64{pid}, Main: true, Still: &still, Whole: true, Frames: []hang.Frame{
			{Kind: "native", Function: "clock_nanosleep", Module: "libc.so.6"}, {Kind: "python", Function: "work", File: file, Line: 88}}}}
	}
	return r
}

func putHang(t *testing.T, s store.Store, job string, at time.Time, r *hang.Recording) {
	t.Helper()
	v := hang.Judge(r)
	if err := store.PutHang(t.Context(), s, store.Hang{Job: job, Tool: "1", At: at.UnixNano(), Since: at.Add(-5 * time.Second).UnixNano(),
		Verdict: &v, Recording: r,
		Dump: "/spool/" + r.Host}); err != nil {
		t.Fatal(err)
	}
}

// What agents of two nodes have found about one hang, each without the other, names the
// rank; an hour before it was another one, and another job is told of when it is asked for.
func TestHangOfAStoreJudgesWhatItsNodesKnewTogether(t *testing.T) {
	location := filepath.Join(t.TempDir(), "store")
	s, err := store.NewDirectory(location)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	putHang(t, s, "llama", now.Add(-time.Hour), nodeHang("node-a", map[int64]int64{0: 42, 2: 0}))
	putHang(t, s, "llama", now.Add(-time.Minute), nodeHang("node-a", map[int64]int64{0: 42, 2: 42}))
	putHang(t, s, "llama", now.Add(-time.Minute+3*time.Second), nodeHang("node-b", map[int64]int64{1: 0}))
	putHang(t, s, "other \x1b[31m", now.Add(-2*time.Minute), nodeHang("node-b", map[int64]int64{0: 42, 1: 0, 2: 0}))
	putHang(t, s, "llama", now.Add(-72*time.Hour), nodeHang("node-a", map[int64]int64{0: 42}))
	text, _, code, err := testcommand.Run(Command(), "hang", location)
	for _, want := range []string{
		"job llama was blocked from ", "as the agents of node-a, node-b said at ", "no step of it was seen since",
		"\nof 3 ranks 2 wait in collective 42 (gloo::allreduce), for 5.0 s when that was written; rank 1 has not come (at cleanup.py:88 work)\n",
		"  missing  rank 1    node-b  pid 101      last asked for 41 (gloo::allreduce); last seen at cleanup.py:88 work\n",
		"  waits    rank 2    node-a  pid 102      gloo::allreduce  train.py:88 work\n",
		"stack of what missing: rank 1, main thread, still for 4.5 s\n    c  clock_nanosleep  [libc.so.6]\n    py work  cleanup.py:88\n",
		"dumps of the flight recorder's format: node-a:/spool/node-a\n", ": of 3 ranks 1 wait in collective 42 (gloo::allreduce), for 5.0 s " +
			"when that was written; rank 2 has not come (at cleanup.py:88 work); 1 more are in no recording given\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if err != nil || code != 0 || t.Failed() || strings.Count(text, "before: ") != 1 {
		t.Errorf("%d, %v:\n%s", code, err, text)
	}
	if text, _, _, err = testcommand.Run(Command(), "hang", location, "--job", "other \x1b[31m"); err != nil || !strings.Contains(text,
		`job other \x1b[31m was blocked`) ||
		!strings.Contains(text, "2 ranks have not come: rank 1 (at cleanup.py:88 work), rank 2 (at cleanup.py:88 work)") {
		t.Errorf("%v:\n%q", err, text)
	}
	if text, _, _, err = testcommand.Run(Command(), "hang", location, "--job", "nobody"); err != nil ||
		text != "no agent has detected blocked ranks, of job nobody, in the last 24h0m0s\n" {
		t.Errorf("%v: %q", err, text)
	}
	// Once it makes steps again that is said.
	patterns := []pattern.Pattern{{PID: 101, BeginNS: now.UnixNano(), EndNS: now.UnixNano() + 1}}
	if _, err := store.Send(t.Context(), s, store.Batch{Session: "s", Job: "llama", Host: "node-b", Tool: "1", Patterns: patterns,
		Steps: []pattern.Step{{PID: 101, BeginNS: now.UnixNano(), PeriodNS: 1}}}); err != nil {
		t.Fatal(err)
	}
	text, _, _, err = testcommand.Run(Command(), "hang", location, "--json")
	var answer struct {
		Job       string
		Incidents []struct {
			Kind       string
			Hosts      []string
			StepsAfter bool `json:"steps_after"`
			Report     struct {
				Groups []struct {
					Missing []struct{ Rank int }
				}
			}
		}
	}
	if err != nil || json.Unmarshal([]byte(text), &answer) != nil || answer.Job != "llama" || len(answer.Incidents) != 2 ||
		!answer.Incidents[0].StepsAfter ||
		answer.Incidents[0].Kind != hang.KindMissing || len(answer.Incidents[0].Hosts) != 2 ||
		answer.Incidents[0].Report.Groups[0].Missing[0].Rank != 1 {
		t.Errorf("%v: %s", err, text)
	}
}
