package calltree

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// TestAThreadsTimesAreNoLongerThanTheRecording though its rows stand for more; a child's is no longer than its parent's.
func TestAThreadsTimesAreNoLongerThanTheRecording(t *testing.T) {
	for wall, shortened := range map[int64]bool{1e3: true, 1e12: false} {
		ended := int64(1e15) + wall
		db := sliced(t, 4, func(d *output.Dataset) error {
			return d.Session(event.Recording{ID: "s", StartedNS: 1e15, EndedNS: &ended})
		})
		tree := loaded(t, db)
		sum := tree.Inclusive("host_ns")[tree]
		if shortened != (tree.Shortened > 1) || shortened && math.Abs(sum-float64(wall)) > 1 || sum > float64(wall)+1 {
			t.Errorf("a recording of %d ns: %g ns in the tree, divided by %g", wall, sum, tree.Shortened)
		}
		var text bytes.Buffer
		if err := tree.Write(&text, "host_ns", Style{}); err != nil || strings.Contains(text.String(), "are divided by it") != shortened {
			t.Errorf("%v\n%s", err, text.String())
		}
		for at, inside := range tree.Inclusive("host_ns") {
			if at.Parent != nil && inside > tree.Inclusive("host_ns")[at.Parent]+1e-6 {
				t.Errorf("%s takes %g ns and its parent less", at.Name, inside)
			}
		}
	}
}
