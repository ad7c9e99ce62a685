package agent

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/jobs"
	"github.com/ebpfprof/ebpfprof/internal/fleet/live"
	"github.com/ebpfprof/ebpfprof/internal/fleet/trigger"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func TestTheSpoolKeepsTheNewest(t *testing.T) {
	spool := t.TempDir()
	for _, name := range []string{"20260101T000000Z-a", "20260102T000000Z-b", "20260103T000000Z-c"} {
		write(t, filepath.Join(spool, name, "span", "0.parquet"), strings.Repeat("x", 1000))
	}
	if err := trim(spool, 2500); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(spool, "*"))
	if len(left) != 2 || !strings.HasSuffix(left[0], "-b") {
		t.Errorf("%q", left)
	}
}

// Without a spool nothing is kept, and nothing goes wrong.
func TestWithoutASpoolARecordingHasNoBytes(t *testing.T) {
	var none *raw
	none.begin(event.Recording{})
	none.discard()
	if bytes, err := none.end(); bytes != 0 || err != nil {
		t.Errorf("%d, %v", bytes, err)
	}
}

func TestMetricsNameEveryJobAndWhatIsWrong(t *testing.T) {
	s := newSupervisor(defaults(), nil)
	s.jobs["a\"b\x1b\xff"] = &supervised{job: jobs.Job{Name: "a\"b\x1b\xff"}, status: Status{Steps: 7, Slow: 2, MeanMS: 250}}
	r := httptest.NewRecorder()
	s.handler().ServeHTTP(r, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{"ebpfprof_steps_total{training_job=\"a\\\"b", "} 7\n", "ebpfprof_step_seconds", " 0.25\n", `kind="slow",training_job="a\"b\\x1b\\xff-d2c5ade2"} 2`} {
		if !strings.Contains(r.Body.String(), want) {
			t.Errorf("no %s in\n%s", want, r.Body.String())
		}
	}
	r = httptest.NewRecorder()
	s.handler().ServeHTTP(r, httptest.NewRequest("GET", "/healthz", nil))
	if r.Code != 503 {
		t.Errorf("an agent that never looked is healthy: %d", r.Code)
	}
	s.looked = time.Now()
	r = httptest.NewRecorder()
	s.handler().ServeHTTP(r, httptest.NewRequest("GET", "/healthz", nil))
	if r.Code != 200 {
		t.Errorf("%d %s", r.Code, r.Body.String())
	}
}

// The test's own process maps its own file to run it: with that for a library it is a
// job, and a child of it is none of its own. (Of package jobs the test is a static program.)
func TestAJobIsFoundByWhatItRuns(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := jobs.New([]string{filepath.Base(self)}, nil)
	d.Own = -1
	found, err := d.Look("named")
	if err != nil || len(found) != 1 || found[0].Name != "named" || len(found[0].PIDs) != 1 || found[0].PIDs[0] != os.Getpid() {
		t.Errorf("%+v, %v", found, err)
	}
	if found, err := jobs.New([]string{"libnothing.so"}, nil).Look(""); err != nil || len(found) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestAWorkerThatSeesNoStepsSaysSoOnce(t *testing.T) {
	w := worker{config: Config{Budget: "1%"}, steps: live.New(trigger.Published)}
	if text := w.blind(blindAfter - time.Second); text != "" {
		t.Errorf("of a job that is still young: %q", text)
	}
	if err := w.steps.Warning(event.Warning{Kind: "slice", Source: "backward"}); err != nil {
		t.Fatal(err)
	}
	if text := w.blind(blindAfter); !strings.Contains(text, "backward") || !strings.Contains(text, "budget: 1%") {
		t.Errorf("it does not say why: %q", text)
	}
	if text := w.blind(2 * blindAfter); text != "" {
		t.Errorf("it says it again: %q", text)
	}
}
