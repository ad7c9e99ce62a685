package e2e

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// Nor do two tests wait for each other that name the same libraries in another order.
func TestNoTwoTestsTraceTheSameLibraryAtATime(t *testing.T) {
	harness.NeedKernel(t)
	one, other := "a library of this test", "another library of this test"
	var tracing [2]atomic.Int32
	for n, libraries := range [][]string{{one, other}, {one}, {other, one}, {one, one}, {one, other}, {other, one}} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			harness.Beside(t, libraries...)
			for range 10_000 { // long enough for others to come, if they could
				for i, library := range []string{one, other} {
					if libraries[0] != library && libraries[len(libraries)-1] != library {
						continue
					}
					if n := tracing[i].Add(1); n > 1 {
						t.Fatalf("%d tests trace %s", n, library)
					}
					runtime.Gosched()
					tracing[i].Add(-1)
				}
			}
		})
	}
}
