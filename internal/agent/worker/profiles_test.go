package worker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/jobs"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Samples that the disk does not take are counted, and said.
func TestSamplesThatAreNotWrittenAreCounted(t *testing.T) {
	c := config.Defaults()
	if samplesOf(&c, 99) != nil {
		t.Error("the default is to send profiles")
	}
	c.OTLP, c.Spool = "http://collector:4318", filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(c.Spool, nil, 0o600); err != nil { // nothing can be written below it
		t.Fatal(err)
	}
	var said strings.Builder
	w := &worker{config: c, job: jobs.Job{Name: "llama"}, host: "node1", out: json.NewEncoder(&said)}
	samples := samplesOf(&c, 99)
	if err := samples.Write(&event.Batch{Samples: []event.Sample{{TSNS: 1_700_000_000e9, PID: 7, TID: 7, State: event.OnCPU,
		WeightNS: 10e6}}}); err != nil {
		t.Fatal(err)
	}
	if w.export(t.Context(), samples); w.status.Unwritten != 1 || !strings.Contains(said.String(), "not sent to the collector") {
		t.Errorf("%d: %s", w.status.Unwritten, said.String())
	}
}
