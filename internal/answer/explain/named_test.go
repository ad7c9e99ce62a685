package explain

import (
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// TestWhatStacksShowComesBeforeAFindingOfTheSameTime: the clones of copy.deepcopy are no copies between layouts; others are.
func TestWhatStacksShowComesBeforeAFindingOfTheSameTime(t *testing.T) {
	file, line, headroom := "/home/me/fit.py", 16, 40.0
	layout := findings.Finding{Rule: "layout", Severity: findings.High, File: &file, Line: &line, HeadroomPercent: &headroom,
		Advice: "Choose one layout."}
	for copies, want := range map[string]string{
		"deepcopy@/usr/lib/python3.11/copy.py:128; op:aten::clone": "copy.deepcopy",
		"op:aten::clone": "layout",
	} {
		r := counted(t, made(t, []seen{{8000, "on", script + "; keep@/home/me/fit.py:16; " + copies},
			{8000, "on", script + "; op:aten::mm"}}), &event.Batch{})
		r.in.Findings = []findings.Finding{layout}
		all, err := otherRules(r)
		if err != nil || len(all) != 1 || !strings.Contains(all[0].title+all[0].sentence, want) {
			t.Errorf("%s: %v, %+v", copies, err, all)
		}
	}
}

// TestALibrarysOwnThreadsAreNoLock: a thread that waits in a library without Python for what its pool does.
func TestALibrarysOwnThreadsAreNoLock(t *testing.T) {
	for stack, want := range map[string]string{
		"native:rayon_core::latch::LockLatch::wait_and_reset@polars.abi3.so": "in polars at collate (fit.py:18), for that library's own threads",
		"acquire@/usr/lib/python3.11/threading.py:180":                       "waits for a lock (futex) at collate (fit.py:18)",
	} {
		r := counted(t, made(t, []seen{{9000, "futex", script + "; collate@/home/me/fit.py:18; " + stack},
			{8000, "on", script + "; op:aten::mm"}}), &event.Batch{})
		found, err := blocked(r)
		if err != nil || len(found) != 1 || !strings.Contains(found[0].sentence, want) {
			t.Errorf("%s: %v, %+v", stack, err, found)
		}
	}
	tokens := script + "; collate@/home/me/fit.py:18; native:rayon_core::latch::LockLatch::wait_and_reset@tokenizers.abi3.so"
	r := counted(t, made(t, []seen{{9000, "futex", tokens}, {8000, "on", script + "; op:aten::mm"}}), &event.Batch{})
	if found, err := blocked(r); err != nil || len(found) != 0 {
		t.Errorf("%v, %+v", err, found)
	}
	known := r.knownCosts()
	if len(known) != 1 || !strings.Contains(known[0].sentence, "splitting text into tokens, under collate (fit.py:18)") {
		t.Errorf("%+v", known)
	}
}
