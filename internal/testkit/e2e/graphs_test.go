package e2e

import (
	"fmt"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// TestMemoryNodesAllocateAtEachReplay: whatever frees it, the graph, the job or
// the next launch, what a stub's graphs allocate is balanced.
func TestMemoryNodesAllocateAtEachReplay(t *testing.T) {
	harness.Beside(t, "libcuda")
	r, want := traceStub(t, cudaGroups, stub(t, "cudacalls"), "memory")
	checkMemory(t, r, want.memory)
	for sql, n := range map[string]int64{
		"SELECT count(*) FROM memory WHERE level = 'driver' AND action = 'alloc' AND graph_exec IS NULL": 0,
		// Four replays, of two executable graphs; what the job frees itself is its own.
		"SELECT count(DISTINCT graph_exec) FROM memory": 2,
		`SELECT count(DISTINCT s.span_id) FROM memory m JOIN span s USING (span_id)
			WHERE graph_exec IS NOT NULL AND s.name = 'cuGraphLaunch' AND m.ts_ns BETWEEN s.ts_ns AND s.ts_ns + s.duration_ns`: 4,
		"SELECT count(*) FROM memory WHERE graph_exec IS NULL AND action = 'free'":                           3,
		"SELECT sum(CASE action WHEN 'alloc' THEN bytes ELSE -bytes END) FROM memory WHERE level = 'driver'": 0,
		"SELECT count(*) FROM memory WHERE bytes = 640 AND action = 'alloc' AND pool = 36864":                1,
		"SELECT count(*) FROM memory WHERE pool IS NOT NULL":                                                 1,
	} {
		if got := r.Number(t, sql); got != n {
			t.Errorf("%s: %d, want %d", sql, got, n)
		}
	}
}

func TestMemoryNodesOfHIPAllocateAtEachReplay(t *testing.T) {
	harness.Beside(t, "hip")
	r, want := sharedStub(t, hipGroups, stub(t, "hipcalls"), "all")
	checkMemory(t, r, want.memory)
	if n := r.Number(t, "SELECT count(*) FROM memory WHERE graph_exec IS NOT NULL AND action = 'alloc'"); n != 4 {
		t.Errorf("%d allocations of two replays with two memory nodes each", n)
	}
}

// TestConditionalBodiesAreNotCountedAsRun: the stub runs the body of "while" three
// times and that of "if" not at all, and only it knows.
func TestConditionalBodiesAreNotCountedAsRun(t *testing.T) {
	harness.Beside(t, "libcuda")
	r, spans := traceTimes(t, "conditional")
	edges := r.Rows(t, `SELECT f.kind, n.name, n.grid_x, count(*) FROM flow f JOIN span l ON l.span_id = f.from_span_id
		JOIN span n ON n.span_id = f.to_span_id WHERE l.name = 'cuGraphLaunch' AND f.kind != 'launch_sync' GROUP BY ALL ORDER BY ALL`)
	want := "[[capture_conditional cuGraphAddMemcpyNode <nil> 2] [capture_conditional cuGraphAddNode <nil> 2]" +
		" [capture_conditional scale(float*, int) 200 2] [capture_conditional scale(float*, int) 300 2]" +
		" [capture_conditional scale(float*, int) 400 2] [capture_conditional scale(float*, int) 401 2]" +
		" [capture_replay cuGraphAddNode <nil> 6] [capture_replay scale(float*, int) 100 2]]"
	if fmt.Sprint(edges) != want {
		t.Errorf("replays run\n%v, want\n%s", edges, want)
	}
	if n := r.Number(t, "SELECT count(*) FROM span WHERE category = 'launch'"); n != 0 {
		t.Errorf("%d launches, all of which were captured", n)
	}
	replays := 0
	for _, s := range spans {
		if s.name == "cuGraphLaunch" {
			if replays++; !s.known || s.pieces != 5 || s.truth > s.high {
				t.Errorf("a replay of %d pieces that took %d ns: known %t, [%d, %d]", s.pieces, s.truth, s.known, s.low, s.high)
			}
		}
	}
	if replays != 2 {
		t.Errorf("%d replays, want 2", replays)
	}
	if n := r.Number(t, "SELECT coalesce(sum(count), 0) FROM warning WHERE source = 'graph_body_unread'"); n != 1 {
		t.Errorf("%d bodies were not read, want the third of the switch", n)
	}
}
