package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// TestPlantedMemoryIsFoundAtItsLine: a leak, a growth and a peak are told first, at
// the line that they are planted at; the peak, that a backward pass makes, at the
// line of the forward operator. A loop without any of them has no finding.
func TestPlantedMemoryIsFoundAtItsLine(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		// Thirty steps take 30 to 80 ms: on a busy machine such a process has gone before its code has been read.
		for _, plant := range []string{"leak", "growth", "peak", "none"} {
			r := harness.Record(t, []string{"--budget", "off"}, v.Job("hoarder.py", "--plant", plant, "--steps", "200")...)
			var answer struct {
				Arenas []struct {
					Steps   int
					Growth  []struct{ Line, Kind string }
					Holders struct {
						ByLine []struct {
							Key   string
							Share float64
						} `json:"by_line"`
					}
				}
			}
			harness.Ask(t, &answer, "memory", r.Dataset, "--json")
			a := answer.Arenas[0]
			line := fmt.Sprintf("hoarder.py:%d ", r.Truth.Line)
			switch plant {
			case "none":
				if len(a.Growth) > 0 {
					t.Errorf("%s, a loop without growth: %+v", v.Name, a.Growth)
				}
			case "peak":
				if h := a.Holders.ByLine; len(h) == 0 || !strings.Contains(h[0].Key, line) {
					t.Errorf("%s: the peak is from %s; told %+v", v.Name, line, h)
				}
			default:
				if len(a.Growth) == 0 || a.Growth[0].Kind != plant || !strings.Contains(a.Growth[0].Line, line) {
					t.Errorf("%s: %s at %s; told %+v", v.Name, plant, line, a.Growth)
				}
			}
			t.Logf("%s, %s at %s: %d steps, growth %+v, first holder %+v", v.Name, plant, line, a.Steps, a.Growth,
				a.Holders.ByLine[0])
		}
	})
}
