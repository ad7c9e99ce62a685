package recorder

import (
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/filter"
)

func printed(s *summary) string {
	var b strings.Builder
	s.print(&b, false)
	return b.String()
}

func TestASummarySaysWhichCountsAreEstimates(t *testing.T) {
	operators := []operatorSummary{{Name: "aten::addmm", Layer: "op", Count: 147.4, Timed: 147.4, DurationNS: 1e9}}
	whole := printed(&summary{Operators: operators})
	if strings.Contains(whole, "estimate") || strings.Contains(whole, "≈") || !strings.Contains(whole, "\nno row was lost\n") {
		t.Errorf("every call was recorded, and it says\n%s", whole)
	}
	sliced := printed(&summary{Operators: operators, Sampled: true})
	for _, words := range []string{"≈ calls", "≈ total ms", "calls and times in the table are estimates",
		"no row was lost of what the slices saw"} {
		if !strings.Contains(sliced, words) {
			t.Errorf("it does not say %q:\n%s", words, sliced)
		}
	}
	lost := printed(&summary{Sampled: true, Lost: map[string]uint64{"ring_full": 7}})
	if !strings.Contains(lost, "lost: 7 rows, ring_full: the ring buffer was full") || strings.Contains(lost, "no row was lost") {
		t.Errorf("7 rows were lost, and it says\n%s", lost)
	}
	for _, s := range []string{whole, sliced, lost} {
		if strings.Contains(s, "nothing was lost") {
			t.Errorf("it claims more than was measured:\n%s", s)
		}
	}
}

func TestASummarySaysWhichCallsHaveNoTime(t *testing.T) {
	operators := []operatorSummary{{Name: "Engine::execute", Layer: "autograd", Count: 101, Timed: 100, DurationNS: 100e6},
		{Name: "aten::addmm", Layer: "op", Count: 5, Timed: 5, DurationNS: 1e6}}
	s := printed(&summary{Operators: operators})
	if want := "calls whose end was not seen: 1 (Engine::execute)"; !strings.Contains(s, want) || !strings.Contains(s, "1000.0") {
		t.Errorf("it does not say %q, or not 1000 µs a call:\n%s", want, s)
	}
	if s := printed(&summary{Operators: operators[1:]}); strings.Contains(s, "end was not seen") {
		t.Errorf("all calls have ended, and it says\n%s", s)
	}
}

func TestNamesInASummaryMoveNoCursor(t *testing.T) {
	s := printed(&summary{Operators: []operatorSummary{{Name: "a\x1b[2J\nno row was lost", Layer: "scope", Count: 1, Timed: 1}},
		Lost: map[string]uint64{"ring_full": 7}})
	if strings.Contains(s, "\x1b") || strings.Contains(s, "\nno row was lost") {
		t.Errorf("%q", s)
	}
}

func TestTheCommandLineIsWhatAShellTakes(t *testing.T) {
	args := []string{"ebpfprof", "run", "--budget", "5%", "-o", "/tmp/it's here", "--", "python3", "-c", "print(1)", ""}
	if got, want := commandLine(args, false), `ebpfprof run --budget 5% -o '/tmp/it'\''s here' -- python3 -c 'print(1)' ''`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got, want := commandLine(args, true), `ebpfprof run --budget 5% -o '[redacted]' -- '[redacted]'`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestParametersAreWhatTheFlagsCameTo(t *testing.T) {
	r := recorder{options: tracer.Options{Follow: true, Filter: filter.Filter{Probe: filter.Terms{filter.Group: {"op", "cuda"}},
		Exclude: filter.Terms{filter.Symbol: {"aten::view"}}}, Budget: 0.05, Frequency: 99, MaxFrames: 128, VerifyStacks: 256,
		BufferBytes: 64 << 20}}
	p := r.parameters()
	if !*p.Follow || p.Probe != "op,cuda" || p.Exclude != "symbol=aten::view" || *p.Budget != 5 || *p.FrequencyHz != 99 || p.OffCPUNS != nil ||
		p.CountersNS != nil || p.DurationNS != nil ||
		p.BufferBytes != 64<<20 || p.RotateNS != 60e9 || p.AttachWith != "" {
		t.Errorf("%+v", p)
	}
}
