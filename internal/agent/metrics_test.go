package agent

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/jobs"
	"github.com/ebpfprof/ebpfprof/internal/agent/worker"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testfile"
)

// scraped is what a server of Prometheus reads of the agent.
func scraped(t *testing.T, s *supervisor) map[string]*dto.MetricFamily {
	t.Helper()
	answer := httptest.NewRecorder()
	s.handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	text := answer.Body.String()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil || answer.Code != 200 {
		t.Fatalf("%d, %v:\n%s", answer.Code, err, text)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	return families
}

// value is of the metric with these labels, "name=value".
func value(t *testing.T, all map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	for _, m := range all[name].GetMetric() {
		found := 0
		for _, l := range m.GetLabel() {
			for _, want := range labels {
				if l.GetName()+"="+l.GetValue() == want {
					found++
				}
			}
		}
		if found != len(labels) {
			continue
		}
		switch {
		case m.Counter != nil:
			return m.Counter.GetValue()
		case m.Gauge != nil:
			return m.Gauge.GetValue()
		case m.Histogram != nil:
			return float64(m.Histogram.GetSampleCount())
		}
	}
	t.Errorf("there is no %s %v", name, labels)
	return -1
}

func TestPrometheusReadsWhatTheAgentExposes(t *testing.T) {
	c := config.Defaults()
	c.Spool = t.TempDir()
	testfile.Write(t, filepath.Join(c.Spool, "20260101T000000Z-a", "span", "0.parquet"), strings.Repeat("x", 1000))
	testfile.Write(t, filepath.Join(c.Spool, "outbox", "v1", "1.parquet"), strings.Repeat("x", 234))
	s := newSupervisor(c, nil)
	last := worker.Counts{Rows: map[string]int64{"span": 200, "sample": 40}, Lost: map[string]int64{"ring_full": 6}, Hits: 2000, Probes: 40,
		Pending: map[string]int64{"calls": 4096, "samples": 512}}
	hostile := "a\"b\\\n\x1b[31m\xff</script>{job=\"x\"} 1\n# HELP x"
	for name, steps := range map[string]int64{"train": 7, hostile: 5, strings.Repeat("long", 10<<20/4): 9, strings.Repeat("long", 10<<20/4) +
		"er": 1,
		"a\x1b": 1, "a\\x1b": 1} { // two pairs that look the same
		s.jobs[name] = &supervised{job: jobs.Job{Name: name}, status: worker.Status{Steps: steps, Slow: 2, MeanMS: 250, Bytes: 10, RawBytes: 90,
			Recorded: last, Now: worker.Lasting{Slow: 3}}}
	}
	failed := errors.New("full")
	for _, err := range []error{nil, nil, failed} {
		if got := (timed{taker(func() error { return err }), s.node.uploads}).Put(t.Context(), "k", nil); !errors.Is(got, err) {
			t.Errorf("%v instead of %v", got, err)
		}
	}
	all := scraped(t, s)
	for _, w := range []struct {
		name   string
		want   float64
		labels []string
	}{
		{"ebpfprof_build_info", 1, []string{"analysis_version=" + store.AnalysisVersion}},
		{"ebpfprof_spool_bytes", 1234, nil},
		{"ebpfprof_upload_duration_seconds", 2, []string{"result=ok"}},
		{"ebpfprof_upload_duration_seconds", 1, []string{"result=failed"}},
		{"ebpfprof_events_total", 200, []string{"training_job=train", "table=span"}},
		{"ebpfprof_events_total", 40, []string{"training_job=train", "table=sample"}},
		{"ebpfprof_events_dropped_total", 6, []string{"training_job=train", "reason=ring_full"}},
		{"ebpfprof_parquet_bytes_total", 100, []string{"training_job=train"}},
		{"ebpfprof_steps_total", 7, []string{"training_job=train"}},
		{"ebpfprof_probe_hits_total", 2000, []string{"training_job=train"}},
		{"ebpfprof_probes_attached", 40, []string{"training_job=train"}},
		{"ebpfprof_ringbuf_pending_bytes", 4096, []string{"training_job=train", "ring=calls"}},
		{"ebpfprof_ringbuf_pending_bytes", 512, []string{"training_job=train", "ring=samples"}},
		{"ebpfprof_degraded", 3, []string{"training_job=train", "kind=slow"}},
		{"ebpfprof_degraded", 0, []string{"training_job=train", "kind=blocked"}},
		{"ebpfprof_jobs", 6, nil},
	} {
		if got := value(t, all, w.name, w.labels...); got != w.want {
			t.Errorf("%s %v is %v, not %v", w.name, w.labels, got, w.want)
		}
	}
	if value(t, all, "ebpfprof_agent_cpu_seconds_total") <= 0 {
		t.Error("the agent takes no CPU")
	}
	// A job chooses its own name: it is one bounded line, and no second metric.
	longest := 0
	for _, m := range all["ebpfprof_steps_total"].GetMetric() {
		for _, l := range m.GetLabel() {
			longest = max(longest, len(l.GetValue()))
			if strings.ContainsAny(l.GetValue(), "\n\x1b") {
				t.Errorf("%q", l.GetValue())
			}
		}
	}
	if n := len(all["ebpfprof_steps_total"].GetMetric()); n != 6 || longest > 300 || all["x"] != nil {
		t.Errorf("%d jobs, the longest name has %d bytes", n, longest)
	}
}

// taker is a store that answers so.
type taker func() error

func (f taker) Put(context.Context, string, []byte) error { return f() }

// The CPU time of workers is in the agent's while they live and when they have ended, and
// a counter never falls.
func TestTheAgentsCPUTimeIsItsWorkersToo(t *testing.T) {
	n := newNode()
	before, err := n.seconds(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sh", "-c", "while :; do :; done")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	workers := []int{c.Process.Pid}
	living, last := 0.0, before
	for deadline := time.Now().Add(20 * time.Second); living < 0.3 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		living = childSeconds(c.Process.Pid)
		now, err := n.seconds(workers)
		if err != nil || now < last {
			t.Fatalf("%v after %v, %v", now, last, err)
		}
		last = now
	}
	if living < 0.3 || last < before+0.25 {
		t.Fatalf("the worker took %.2f s, the agent %.2f s more", living, last-before)
	}
	if without, _ := newNode().seconds(nil); without > last-0.25 {
		t.Errorf("%.2f s without the worker, %.2f s with it", without, last)
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	ended, err := newNode().seconds(workers) // it remembers nothing, and the number is nobody's
	if err != nil || ended < before+0.25 || ended < last-0.05 {
		t.Errorf("%.2f s once it has ended, %.2f s before, %v", ended, last, err)
	}
	if s := childSeconds(os.Getppid()); s != 0 {
		t.Errorf("a process that is no child has %v s", s)
	}
	n.cpu = 1e6
	if now, err := n.seconds(nil); now != 1e6 || err != nil {
		t.Errorf("the counter fell to %v, %v", now, err)
	}
}
