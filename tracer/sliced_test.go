package tracer

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// A job that makes more calls than the budget allows for is recorded in slices, also where
// each probe is a perf event that the kernel takes tens of milliseconds to take out: a
// part of the calls is seen, the probes are gone, and the job did what it does.
func TestPerfEventsAreSliced(t *testing.T) {
	const rounds = 2_000_000 // some seconds, and a slice's budget in some thousand of them
	groups := nativeGroup("libcallee-plain", catalog.ExitSites, callees)
	groups[0].Tier = catalog.Detail
	truth, sink, session := traceCommand(t, Options{PerfEvents: true, Budget: 0.05, catalog: groups}, nil,
		filepath.Join(buildNative(t), "calls-plain"), strconv.Itoa(rounds), "wait")
	if truth.Calls["callee_plain"] != 2*rounds {
		t.Errorf("the job made %d calls, want %d", truth.Calls["callee_plain"], 2*rounds)
	}
	counts := countSpans(sink.spans)
	for name, made := range truth.Calls {
		if recorded := counts[name]; recorded >= made || recorded == 0 && name != "callee_loop_at_entry" {
			t.Errorf("%s: %d of %d calls recorded, want a part", name, recorded, made)
		}
	}
	if left := session.kernel.LinksLeft(); left != 0 {
		t.Errorf("%d probes are left", left)
	}
}
