package tracer

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
)

func TestWhichCallsHaveALineOfTheirOwn(t *testing.T) {
	for label, want := range map[string]bool{
		"op": true, "Engine::execute": true, "Engine::evaluate_function": true, "set_gradient_edge": true,
		"ProfiledCPUMemoryReporter::New": true, "ProfiledCPUMemoryReporter::Delete": true, "free_cpu": true, "alloc_cpu": false,
		"cuStreamSynchronize": true,
		"PyFunctionPreHook":   false, "record_function_exit_new": false,
	} {
		f := labelled(t, label)
		if got := wantsLine(LevelWindow, f); got != want {
			t.Errorf("%s at window: %v, want %v", label, got, want)
		}
		if wantsLine(LevelAnchor, f) {
			t.Errorf("%s at anchor wants a line", label)
		}
	}
}

func TestOnlyABackwardNodeAsksForItsForwardLine(t *testing.T) {
	for label, want := range map[string]bool{"op": false, "Engine::evaluate_function": true, "set_gradient_edge": false} {
		p := plan.Probe{Function: labelled(t, label)}
		p.TakeLine()
		if got := p.Spec.Flags&uint16(bpf.CallSpecFlagSPEC_BACKWARD) != 0; got != want || !p.TakesLine() {
			t.Errorf("%s: %v, want %v", label, got, want)
		}
	}
}

func TestLinesArePricedByWhatIsTaken(t *testing.T) {
	for _, test := range []struct {
		name   string
		totals kernel.MemoTotals
		rows   uint64
		want   float64
	}{
		{"nothing is known", kernel.MemoTotals{Found: 10}, 20, usualLinePrice},
		{"a quarter is outermost, all memoised", kernel.MemoTotals{Found: 1000}, 4000, memoisedLinePrice / 4},
		{"all walked", kernel.MemoTotals{Walked: 1000}, 1000, walkedLinePrice},
		{"compared as well", kernel.MemoTotals{Found: 1000, Verified: 100}, 1000, memoisedLinePrice + 0.1*walkedLinePrice},
	} {
		if got := lineCostOf(&test.totals, test.rows); got != test.want {
			t.Errorf("%s: %v ns, want %v", test.name, got, test.want)
		}
	}
}
