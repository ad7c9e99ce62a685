package e2e

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// stubWork is a line of a stub device's log: what really ran, and when.
type stubWork struct {
	kind, name                string
	tid, called, began, ended int64
}

func stubLog(t *testing.T, path string) (log []stubWork) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		var w stubWork
		if n, err := fmt.Sscanf(line, "%s\t%s\t%d\t%d\t%d\t%d", &w.kind, &w.name, &w.tid, &w.called, &w.began, &w.ended); n != 6 {
			t.Fatalf("%s: %q: %v", path, line, err)
		}
		log = append(log, w)
	}
	return log
}

// boundedSpan is a recorded call with what is claimed of its device time.
type boundedSpan struct {
	name, category    string
	tid, began, ended int64 // CLOCK_MONOTONIC
	known             bool
	low, high         int64
	method            string
	truth             int64
	longest           int64 // what it may have taken, for whoever waited; 0: not known
	busy              int64 // of a wait: for so long the device was at work meanwhile, at least; 0: not known
	pieces            int
}

func boundedSpans(t *testing.T, r *harness.Recording) (spans []*boundedSpan) {
	t.Helper()
	offset := r.Number(t, "SELECT clock_offset_ns FROM session")
	for _, row := range r.Rows(t, `SELECT name, category, tid, ts_ns, duration_ns, device_time_lo_ns, device_time_hi_ns,
		device_time_method, coalesce(device_busy_lo_ns, 0) FROM span WHERE runtime IN ('cuda', 'hip') ORDER BY ts_ns`) {
		s := &boundedSpan{name: fmt.Sprint(row[0]), category: fmt.Sprint(row[1]), tid: harness.Integer(t, row[2])}
		s.began = harness.Integer(t, row[3]) - offset
		s.ended = s.began + harness.Integer(t, row[4])
		s.busy = harness.Integer(t, row[8])
		if s.known = row[5] != nil; s.known {
			s.low, s.high, s.method = harness.Integer(t, row[5]), harness.Integer(t, row[6]), fmt.Sprint(row[7])
		}
		spans = append(spans, s)
	}
	return spans
}

// join gives each recorded call the work that the stub did for it.
func join(t *testing.T, spans []*boundedSpan, log []stubWork) {
	t.Helper()
	for _, w := range log {
		i := slices.IndexFunc(spans, func(s *boundedSpan) bool {
			return s.tid == w.tid && s.began <= w.called && w.called <= s.ended
		})
		if i < 0 {
			t.Errorf("no recorded call holds %+v", w)
			continue
		}
		switch w.kind {
		case "longest":
			spans[i].longest = max(spans[i].longest, w.ended-w.began)
			continue
		case "elapsed":
			spans[i].truth = w.began
		default:
			spans[i].truth += w.ended - w.began
		}
		spans[i].pieces++
	}
}

// traceTimes records a program whose stub device keeps a log.
func traceTimes(t *testing.T, mode ...string) (*harness.Recording, []*boundedSpan) {
	t.Helper()
	return traceProgramTimes(t, cudaGroups, "cudacalls", mode...)
}

func traceProgramTimes(t *testing.T, groups, program string, mode ...string) (*harness.Recording, []*boundedSpan) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	r, _ := traceStub(t, groups, append([]string{"env", "STUB_LOG=" + path, stub(t, program)}, mode...)...)
	spans, log := boundedSpans(t, r), stubLog(t, path)
	join(t, spans, log)
	checkBusy(t, spans, log)
	return r, spans
}

// workedIn is how long the stub device was at work between two moments: the host threads
// that play it, or, whoever waited for them, as long as they may have been.
func workedIn(log []stubWork, kinds []string, from, to int64) (ns int64) {
	log = slices.Clone(log)
	slices.SortFunc(log, func(a, b stubWork) int { return cmp.Compare(a.began, b.began) })
	for _, w := range log {
		if began, ended := max(w.began, from), min(w.ended, to); slices.Contains(kinds, w.kind) && ended > began {
			ns, from = ns+ended-began, ended
		}
	}
	return ns
}

// checkBusy holds what waits say of the device against what it did, each and all together.
func checkBusy(t *testing.T, spans []*boundedSpan, log []stubWork) {
	t.Helper()
	sum, waits, all := int64(0), 0, []string{"work", "longest"}
	for _, s := range spans {
		if s.busy == 0 {
			continue
		}
		sum, waits = sum+s.busy, waits+1
		if truth := workedIn(log, all, s.began, s.ended); truth < s.busy {
			t.Errorf("%s: the device was at work for %d ns of a wait of %d, less than %d", s.name, truth, s.ended-s.began, s.busy)
		}
	}
	truth := workedIn(log, all, 0, math.MaxInt64)
	if sum > truth {
		t.Errorf("the device was at work for %d ns, the waits add up to %d", truth, sum)
	}
	t.Logf("%d waits say of the device that it was at work for %.2f of what it was, at least (stub device)",
		waits, float64(sum)/float64(workedIn(log, all[:1], 0, math.MaxInt64)))
}

// bounds are what is claimed of the device's time in a recording, and how wide.
type bounds struct {
	methods   map[string]int
	widths    map[string][]float64 // of bounds, in times the truth, by category
	unbounded int
	below     []float64 // lower bounds that are not 0, in times the truth
}

// checkBounds holds each claim against what the stub device did.
func checkBounds(t *testing.T, spans []*boundedSpan) bounds {
	t.Helper()
	b := bounds{methods: map[string]int{}, widths: map[string][]float64{}}
	for _, s := range spans {
		if s.pieces == 0 {
			if s.known {
				t.Errorf("%s did nothing on the device, but has a time there", s.name)
			}
			continue
		}
		if !s.known {
			b.unbounded++
			continue
		}
		b.methods[s.method]++
		if s.method == "bounded" && s.low > 0 {
			b.below = append(b.below, float64(s.low)/float64(s.truth))
		}
		if max(s.truth, s.longest) < s.low || s.truth > s.high {
			t.Errorf("%s (%s): %d ns on the device, outside of [%d, %d] (%s)", s.name, s.category, s.truth, s.low, s.high, s.method)
		}
		if s.method == "bounded" && s.truth > 0 {
			b.widths[s.category] = append(b.widths[s.category], float64(s.high-s.low)/float64(s.truth))
		}
	}
	for category, w := range b.widths {
		slices.Sort(w)
		t.Logf("%s: %d bounds, %.2f to %.2f times the truth wide, median %.2f (stub device)", category, len(w), w[0], w[len(w)-1], w[len(w)/2])
	}
	slices.Sort(b.below)
	if n := len(b.below); n > 0 {
		t.Logf("%d lower bounds of %.2f to %.2f times the truth, median %.2f (stub device)", n, b.below[0], b.below[n-1], b.below[n/2])
	}
	return b
}

func TestEveryBoundOfDeviceTimeHoldsTheTruth(t *testing.T) {
	r, spans := traceTimes(t, "times")
	b := checkBounds(t, spans)
	// 5×4 waited for, 5×2 timed, 5×2 polled, 5 waited for alone, one and a copy on the
	// default stream; one nobody waited for.
	if b.methods["bounded"] != 47 || b.methods["measured"] != 5 || b.unbounded != 1 {
		t.Errorf("methods %v and %d without a time, want 47 bounded, 5 measured, 1 without", b.methods, b.unbounded)
	}
	// Those waited for alone, and the first of two by an event: as long as the thread came
	// to wait before the work was through.
	if len(b.below) < 3 || len(b.below) > 10 {
		t.Errorf("%d have a lower bound, want up to 10", len(b.below))
	}
	// But for the first one, those of several pieces of work and of one say for how long the
	// device was at work, as long as the thread came to wait before it was through.
	said := 0
	for _, s := range spans {
		if s.busy > 0 {
			said++
		}
	}
	if said < 6 {
		t.Errorf("%d waits say for how long the device was at work, want 6 or more", said)
	}
	// Each wait for work has an edge from the last of each stream that it was for.
	edges := r.Counts(t, `SELECT w.name, count(*) FROM flow f JOIN span l ON l.span_id = f.from_span_id JOIN span w ON w.span_id = f.to_span_id
		WHERE f.kind = 'launch_sync' AND l.category IN ('launch', 'copy') AND l.ts_ns < w.ts_ns AND f.method = 'stream_order' GROUP BY ALL`)
	harness.SameCounts(t, "edges to waits", edges, map[string]int64{
		"cuStreamSynchronize": 2*2 + 5 + 3, "cuCtxSynchronize": 3*2 + 2, "cuEventSynchronize": 5, "cuMemcpyDtoH": 1,
	})
}

// TestBoundsHoldWhateverTheOrder: two threads that give work to the same streams,
// wait, ask and time at random.
func TestBoundsHoldWhateverTheOrder(t *testing.T) {
	harness.Beside(t, "libcuda", "hip")
	for _, c := range []struct{ groups, program, seed string }{
		{cudaGroups, "cudacalls", "1"}, {cudaGroups, "cudacalls", "2"}, {cudaGroups, "cudacalls", "3"},
		{hipGroups, "hipcalls", "4"}, {hipGroups, "hipcalls", "5"},
	} {
		t.Run(c.program+" "+c.seed, func(t *testing.T) {
			_, spans := traceProgramTimes(t, c.groups, c.program, "random", c.seed)
			b := checkBounds(t, spans)
			// Some have none: those of a default stream whose device a thread does not know.
			if b.methods["bounded"] < 60 || b.methods["measured"] < 10 || b.unbounded > b.methods["bounded"]/2 {
				t.Errorf("methods %v, and %d without a time", b.methods, b.unbounded)
			}
			t.Logf("methods %v, %d without a time", b.methods, b.unbounded)
		})
	}
}

func TestEventsBoundTheWorkBetweenThem(t *testing.T) {
	_, spans := traceTimes(t, "times")
	// The launch of 2 ms between the events, before one of 4 ms that was waited
	// for too: by the wait alone it could have lasted 6 ms.
	tight := 0
	for _, s := range spans {
		if s.category == "launch" && s.known && s.truth > 1_900_000 && s.truth < 2_900_000 && s.high < s.truth+1_500_000 {
			tight++
		}
	}
	if tight < 5 {
		t.Errorf("%d launches are bounded by the events around them, want 5 or more", tight)
	}
}

// TestReplaysRunEveryNode: nodes of all kinds, added or captured, a child graph
// that was a clone, and one that was captured as the launch of another.
func TestReplaysRunEveryNode(t *testing.T) {
	harness.Beside(t, "libcuda")
	r, _ := sharedStub(t, cudaGroups, stub(t, "cudacalls"), "all")
	replays := r.Rows(t, `SELECT span_id FROM span WHERE name = 'cuGraphLaunch' AND category = 'graph'
		AND span_id NOT IN (SELECT to_span_id FROM flow) ORDER BY ts_ns DESC LIMIT 2`)
	added := map[string]int64{
		"cuGraphAddMemcpyNode": 1, "cuGraphAddHostNode": 1, "cuGraphAddChildGraphNode": 1, "cuGraphAddEventRecordNode": 1,
		"cuGraphAddEventWaitNode": 1, "cuGraphAddExternalSemaphoresSignalNode": 1, "cuGraphAddExternalSemaphoresWaitNode": 1,
		"cuGraphAddBatchMemOpNode": 1, "cuGraphAddMemAllocNode": 1, "cuGraphAddMemFreeNode": 1, "scale(float*, int)": 1,
		"cuGraphAddNode":       2, // one of them the child graph, the other a memset
		"cuGraphAddMemsetNode": 2, // of the clone, and of the graph itself as a child
	}
	captured := map[string]int64{
		"cuMemAllocAsync": 1, "cuMemsetD8Async": 1, "cuLaunchHostFunc": 1, "cuEventRecordWithFlags": 1, "cuMemFreeAsync": 1, "cuGraphLaunch": 1,
	}
	for name, n := range added {
		captured[name] += n
	}
	for i, want := range []map[string]int64{captured, added} {
		got := r.Counts(t, fmt.Sprintf(`SELECT n.name, count(*) FROM flow f JOIN span n ON n.span_id = f.to_span_id WHERE f.kind != 'launch_sync'
			AND f.from_span_id = %v GROUP BY ALL`, replays[i][0]))
		harness.SameCounts(t, "what a replay runs", got, want)
	}
}

func TestReplaysOfHIPRunEveryNode(t *testing.T) {
	harness.Beside(t, "hip")
	r, _ := sharedStub(t, hipGroups, stub(t, "hipcalls"), "all")
	got := r.Counts(t, `SELECT n.name, count(*) FROM flow f JOIN span n ON n.span_id = f.to_span_id
		WHERE f.kind != 'launch_sync' AND f.from_span_id = (SELECT min(span_id) FROM span WHERE name = 'hipGraphLaunch') GROUP BY ALL`)
	harness.SameCounts(t, "what a replay runs", got, map[string]int64{
		"scale(float*, int)": 4, "hipGraphAddMemcpyNode": 3, // two of each of the clone, a child twice
		"hipGraphAddMemcpyNode1D": 1, "hipGraphAddMemsetNode": 1, "hipGraphAddHostNode": 1, "hipGraphAddChildGraphNode": 1,
		"hipGraphAddEventRecordNode": 1, "hipGraphAddEventWaitNode": 1, "hipGraphAddMemAllocNode": 1, "hipGraphAddMemFreeNode": 1,
		"hipGraphAddNode": 4, // a child graph, a memset, an allocation and what frees it
	})
}

func TestCapturedLaunchesHaveNotRunAndReplaysNameThem(t *testing.T) {
	harness.Beside(t, "libcuda")
	r, spans := traceTimes(t, "graphs")
	launches := r.Number(t, "SELECT count(*) FROM span WHERE runtime = 'cuda' AND category = 'launch'")
	if launches != 1 {
		t.Errorf("%d launches ran, want the one outside of the capture", launches)
	}
	captured := r.Number(t, `SELECT count(*) FROM span WHERE category = 'graph' AND correlation_id IS NOT NULL AND name != 'cuGraphLaunch'`)
	if captured != 3 {
		t.Errorf("%d calls were captured, want 3: on both streams", captured)
	}
	edges := r.Rows(t, `SELECT n.name, n.grid_x, count(*) FROM flow f JOIN span l ON l.span_id = f.from_span_id
		JOIN span n ON n.span_id = f.to_span_id
		WHERE f.kind = 'capture_replay' AND l.name = 'cuGraphLaunch' GROUP BY ALL ORDER BY 1, 2`)
	want := "[[cuMemsetD8Async <nil> 4] [scale(float*, int) 100 4] [scale(float*, int) 200 4]]"
	if fmt.Sprint(edges) != want {
		t.Errorf("replays run %v, want %s", edges, want)
	}
	for _, s := range spans {
		if s.name == "cuGraphLaunch" && (!s.known || s.truth < s.low || s.truth > s.high || s.pieces != 2) {
			t.Errorf("a replay of %d pieces of work that took %d ns: known %t, [%d, %d]", s.pieces, s.truth, s.known, s.low, s.high)
		}
	}
}
