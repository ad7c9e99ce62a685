package agent

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/jobs"
	"github.com/ebpfprof/ebpfprof/internal/agent/worker"
)

func TestMetricsNameEveryJobAndWhatIsWrong(t *testing.T) {
	s := newSupervisor(config.Defaults(), nil)
	s.jobs["a\"b\x1b\xff"] = &supervised{job: jobs.Job{Name: "a\"b\x1b\xff"}, status: worker.Status{Steps: 7, Slow: 2, MeanMS: 250}}
	r := httptest.NewRecorder()
	s.handler().ServeHTTP(r, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{"ebpfprof_steps_total{training_job=\"a\\\"b", "} 7\n", "ebpfprof_step_seconds", " 0.25\n",
		`kind="slow",training_job="a\"b\\x1b\\xff-d2c5ade2"} 2`} {
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
