package agent

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

type failing struct{ event.Discard }

func (failing) Spans([]event.Span) error { return errors.New("full") }

type counting struct {
	event.Discard
	n *int
}

func (c counting) Spans(r []event.Span) error { *c.n += len(r); return nil }

func TestAFullDiskDoesNotTakeThePatternsWithIt(t *testing.T) {
	n := 0
	if err := (tee{failing{}, counting{n: &n}}).Spans(make([]event.Span, 3)); err == nil || n != 3 {
		t.Errorf("%v, %d", err, n)
	}
	disk := &lenient{Sink: failing{}}
	if err := (tee{disk, counting{n: &n}}).Spans(make([]event.Span, 3)); err != nil || n != 6 || disk.failed == nil {
		t.Errorf("%v, %d, %v", err, n, disk.failed)
	}
	var none *raw
	none.begin(event.Recording{})
	none.discard()
	if bytes, err := none.end(); bytes != 0 || err != nil {
		t.Error("no spool has bytes")
	}
}

func TestMetricsNameEveryJobAndWhatIsWrong(t *testing.T) {
	s := newSupervisor(defaults(), nil)
	s.jobs["a\"b\x1b\xff"] = &supervised{job: Job{Name: "a\"b\x1b\xff"}, status: Status{Steps: 7, Slow: 2, MeanMS: 250}}
	r := httptest.NewRecorder()
	s.handler().ServeHTTP(r, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{"ebpfprof_steps_total{job=\"a\\\"b", "} 7\n", "ebpfprof_step_seconds", " 0.25\n", `kind="slow"} 2`} {
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
// job, and a child of it is none of its own.
func TestAJobIsFoundByWhatItRuns(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := newDiscoverer([]string{filepath.Base(self)})
	d.own = -1
	jobs, err := d.look("named")
	if err != nil || len(jobs) != 1 || jobs[0].Name != "named" || len(jobs[0].PIDs) != 1 || jobs[0].PIDs[0] != os.Getpid() {
		t.Errorf("%+v, %v", jobs, err)
	}
	if jobs, err := newDiscoverer([]string{"libnothing.so"}).look(""); err != nil || len(jobs) != 0 {
		t.Errorf("%+v, %v", jobs, err)
	}
}
