package tracer

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
)

// Kernels of the hazard are not at hand: the session is told that it is on one.
const hazardousRelease = "6.12.0"

func TestUnderSeccompTheRecordingHasNoReturnProbes(t *testing.T) {
	build := buildNative(t)
	for _, c := range []struct {
		name, release string
		filtered      bool
		returns       bool
	}{
		{"filter, hazard", hazardousRelease, true, false},
		{"filter, fixed kernel", "6.14.0", true, true},
		{"no filter, hazard", hazardousRelease, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			argv := []string{filepath.Join(build, "calls-plain"), "200", "wait"}
			if c.filtered {
				argv = append([]string{filepath.Join(build, "filtered")}, argv...)
			}
			options := Options{release: c.release, catalog: nativeGroup("libcallee-plain", spec.Return, callees)}
			truth, sink, session := traceCommand(t, options, nil, argv...)
			checkReturns(t, truth, sink, session, c.returns)
		})
	}
}

// checkReturns: every call is a span, with an end that was seen only where
// there are return probes.
func checkReturns(t *testing.T, truth nativeTruth, sink *recordingSink, session *Session, returns bool) {
	t.Helper()
	counts, exact := countSpans(sink.spans), countSpans(sink.spans, StatusOK)
	for _, p := range session.probes.All() {
		name := p.Planned.Call.Name
		if !p.Attached() {
			continue
		}
		if p.Planned.Return != returns {
			t.Errorf("%s: return probe %t, want %t", name, p.Planned.Return, returns)
		}
		if counts[name] != truth.Calls[name] {
			t.Errorf("%s: %d spans, %d calls", name, counts[name], truth.Calls[name])
		}
		if ok := exact[name] > 0; ok != returns {
			t.Errorf("%s: %d calls were seen to return", name, exact[name])
		}
		if !returns && !errors.Is(p.Planned.ExitErr, plan.ErrNoReturns) {
			t.Errorf("%s does not say why its end is not seen: %v", name, p.Planned.ExitErr)
		}
	}
	said := 0
	for _, w := range sink.warnings {
		if w.Source == "return probes" && strings.Contains(w.Detail, "seccomp") {
			said++
		}
	}
	if (said == 1) == returns {
		t.Errorf("%d warnings of missing return probes", said)
	}
}

// TestUnderSeccompExitSitesGoOn: they are no return probes, and lose nothing.
func TestUnderSeccompExitSitesGoOn(t *testing.T) {
	build := buildNative(t)
	groups := nativeGroup("libcallee-protected", spec.ExitSites, callees)
	truth, sink, session := traceCommand(t, Options{release: hazardousRelease, catalog: groups}, nil,
		filepath.Join(build, "filtered"), filepath.Join(build, "calls-protected"), "200", "wait")
	checkShapes(t, truth, sink, session)
}

// TestAFilterThatComesLaterEndsReturnProbes: a process that puts itself under a
// filter when the probes are in.
func TestAFilterThatComesLaterEndsReturnProbes(t *testing.T) {
	hazard := features.Hazard{Name: "late", Harm: "a seccomp filter kills", Source: "this test", Returns: true}
	groups := nativeGroup("libcallee-plain", spec.Return, callees)
	truth, sink, session := traceCommand(t, Options{catalog: groups}, func(s *Session) {
		for _, p := range s.job.Rows() {
			if err := s.probes.DropReturns(int(p.PID), &hazard); err != nil {
				t.Error(err)
			}
		}
	}, filepath.Join(buildNative(t), "calls-plain"), "200", "wait")
	checkReturns(t, truth, sink, session, false)
}
