package tracer

import (
	"os"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/record/mapfill"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// What a recording uses of its limits can be read while it goes on, by another program.
func TestWhatIsUsedOfTheLimitsIsTold(t *testing.T) {
	needKernel(t)
	working := startLives(t, nil, "burn", "1000")
	probed, _ := startCalls(t)
	options := Options{
		PIDs: []int{working.Process.Pid, probed.Process.Pid}, Level: LevelWindow, Budget: Unlimited, Frequency: 99,
		catalog: nativeGroup("libcallee-plain", spec.ExitSites, callees), Limits: map[string]int{"stacks": 65536, "probes": 100},
	}
	recordInto(t, &recordingSink{}, options, func(s *Session, stop func()) {
		defer stop()
		working.goOn()
		told := map[string]mapfill.Fill{}
		seen(t, s, "use of every limit", func() bool {
			fills, err := mapfill.Limits(os.Getpid())
			if err != nil {
				t.Error(err)
			}
			for _, f := range fills {
				told[f.Name] = f
			}
			return told["stacks"].Used > 0 && told["unwind-mib"].Used > 0
		})
		if told["processes"].Used != 2 || told["files"].Used == 0 || told["probes"].Used != len(callees) {
			t.Errorf("used are %+v", told)
		}
		for _, l := range Limits {
			if f := told[l.Name]; f.Most != s.options.limit(l.Name) || f.Used > f.Most {
				t.Errorf("of %s %d of %d are used; the limit is %d", l.Name, f.Used, f.Most, s.options.limit(l.Name))
			}
		}
	})
}
