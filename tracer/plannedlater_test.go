package tracer

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// awaitingSink tells when a warning of a kind has come.
type awaitingSink struct {
	recordingSink
	kind string
	came chan Warning
}

func (s *awaitingSink) Write(b *event.Batch) error {
	for _, w := range b.Warnings {
		if w.Kind == s.kind && s.came != nil {
			s.came <- w
			s.came = nil
		}
	}
	return s.recordingSink.Write(b)
}

// Functions that were not reached when their file was planned are reported without
// probes and get them later: those attached all the time and those in slices.
func TestWhatIsPlannedLaterIsRecordedFromThenOn(t *testing.T) {
	needKernel(t)
	for _, tier := range []spec.Tier{spec.Anchor, spec.Detail} {
		t.Run(tierName(tier), func(t *testing.T) {
			groups := nativeGroup("libcallee-plain", spec.ExitSites, callees)
			groups[0].Tier = tier
			job := exec.Command(filepath.Join(buildNative(t), "calls-plain"), "200", "wait")
			stdin, err := job.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := job.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := job.Start(); err != nil {
				t.Fatal(err)
			}
			defer job.Process.Kill()
			lines := bufio.NewScanner(stdout)
			lines.Scan() // ready

			came := make(chan Warning, 1)
			sink := &awaitingSink{kind: "late", came: came}
			session, err := Open(t.Context(), Options{PIDs: []int{job.Process.Pid}, BufferBytes: 4 << 20, Budget: Unlimited, catalog: groups,
				times: times{planning: time.Nanosecond}}, sink)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(session.Close)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- session.Run(ctx) }()
			var late Warning
			select {
			case late = <-came:
			case err := <-ended:
				t.Fatalf("the recording ended before the rest was planned: %v", err)
			}
			io.WriteString(stdin, "go\n")
			lines.Scan()
			var said struct{ Truth nativeTruth }
			if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
				t.Fatalf("it said %q: %v", lines.Text(), err)
			}
			if err := job.Wait(); err != nil {
				t.Error(err)
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			cut := int64(0)
			for _, w := range sink.warnings {
				if w.Kind == "incomplete" && w.Source == "planning_cut" {
					cut = w.Count
				}
			}
			if cut == 0 || late.Count != cut || !strings.Contains(late.Detail, "had no turn") {
				t.Errorf("%d functions had no turn at first, the last of %d had theirs: %s", cut, late.Count, late.Detail)
			}
			checkShapes(t, said.Truth, &sink.recordingSink, session)
		})
	}
}

func tierName(t spec.Tier) string {
	if t == spec.Anchor {
		return "anchor"
	}
	return "detail"
}
