package agent

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/jobs"
	"github.com/ebpfprof/ebpfprof/internal/agent/spool"
	"github.com/ebpfprof/ebpfprof/internal/agent/worker"
	"github.com/ebpfprof/ebpfprof/internal/exchange/otlp"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testfile"
	"github.com/ebpfprof/ebpfprof/internal/version"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// sampled has the samples of a window wait for the collector, as a worker has them.
func sampled(t *testing.T, c config.Config) {
	t.Helper()
	samples := otlp.NewWindow(99)
	to := c.Sink(samples)
	if err := to.Write(&event.Batch{Processes: []event.Process{{PID: 7, Exe: "/home/mia/python3"}}}); err != nil {
		t.Fatal(err)
	}
	if err := to.Write(&event.Batch{Samples: []event.Sample{{TSNS: 1_700_000_000e9, PID: 7, TID: 7, State: event.OnCPU,
		WeightNS: 10e6}}}); err != nil {
		t.Fatal(err)
	}
	content, begin, err := samples.Request(c.Called("llama"), c.Called("node1"), version.Version)
	if err == nil {
		at := store.Partition{Table: "profile", Job: c.Called("llama"), Host: c.Called("node1"), At: time.Unix(0, begin)}
		err = spool.PutProfile(t.Context(), c.Spool, at, content)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func metrics(s *supervisor) string {
	r := httptest.NewRecorder()
	s.handler().ServeHTTP(r, httptest.NewRequest("GET", "/metrics", nil))
	return r.Body.String()
}

func TestAWindowsSamplesReachACollector(t *testing.T) {
	var got pprofile.Profiles
	status := http.StatusServiceUnavailable
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		plain, _ := io.ReadAll(z)
		if got, err = (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(plain); err != nil {
			t.Error(err)
		}
		w.WriteHeader(status)
	}))
	defer collector.Close()
	c := config.Defaults()
	c.Store, c.Spool, c.OTLP, c.Redact = t.TempDir(), t.TempDir(), collector.URL, true
	s := newSupervisor(c, nil)
	if err := s.sends(); err != nil {
		t.Fatal(err)
	}
	sampled(t, c)
	if err := spool.MakeRoom(c.Spool, 0); err != nil { // the raw events' room, not the queue's
		t.Fatal(err)
	}
	if err := s.profiles.Pass(t.Context()); err == nil || !strings.Contains(metrics(s), "ebpfprof_profiles_up 0") {
		t.Errorf("a collector that is away: %v", err)
	}
	status = http.StatusOK
	if err := s.profiles.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := metrics(s)
	if state := s.profiles.State(); state.Sent != 1 || state.Files != 0 || !strings.Contains(text, "ebpfprof_profiles_up 1") {
		t.Errorf("%+v in\n%s", state, text)
	}
	for key, value := range got.ResourceProfiles().At(0).Resource().Attributes().AsRaw() {
		if text, ok := value.(string); ok && (strings.Contains(text, "llama") || strings.Contains(text, "node1") || strings.Contains(text,
			"mia")) {
			t.Errorf("redacted, %s is %s", key, text)
		}
	}
}

func TestProfilesForACollectorAreBoundedAndCounted(t *testing.T) {
	refuses := httptest.NewServer(http.NotFoundHandler())
	defer refuses.Close()
	c := config.Defaults()
	c.Store, c.Spool, c.OTLP = t.TempDir(), t.TempDir(), refuses.URL
	s := newSupervisor(c, nil)
	if err := s.sends(); err != nil {
		t.Fatal(err)
	}
	sampled(t, c)
	if err := s.profiles.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.config.OTLPMB = 0 // less than a file
	sampled(t, c)
	if err := s.profiles.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.jobs["llama"] = &supervised{job: jobs.Job{Name: "llama"}, status: worker.Status{Unwritten: 1}}
	text := metrics(s)
	for _, want := range []string{`dropped_total{reason="refused"} 1`, `dropped_total{reason="room"} 1`,
		"ebpfprof_profiles_unwritten_total{training_job=\"llama\"} 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestWithoutACollectorNothingIsKeptForOne(t *testing.T) {
	c := config.Defaults()
	if c.OTLP != "" {
		t.Error("the default is to send profiles")
	}
	s := newSupervisor(c, nil)
	s.config.Store, s.config.Spool = t.TempDir(), t.TempDir()
	if err := s.sends(); err != nil {
		t.Fatal(err)
	}
	if text := metrics(s); strings.Contains(text, "ebpfprof_profiles_up") {
		t.Error("there is a metric of a collector that is not")
	}
	for _, bad := range []string{"otlp: 127.0.0.1:4318", "otlp: http://u:p@c", "otlp: http://c\notlp_mb: 0", "oltp: http://c"} {
		if _, err := config.Read(testfile.Write(t, filepath.Join(t.TempDir(), "agent.yaml"), "store: /s\n"+bad+"\n"), nil); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
