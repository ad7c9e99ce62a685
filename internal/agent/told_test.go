package agent

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/jobs"
	"github.com/ebpfprof/ebpfprof/internal/agent/worker"
	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
)

// Prometheus looks once a minute or so: a job that has failed and ended is shown until then,
// unless others need its place.
func TestAJobThatFailedIsShownForAWhile(t *testing.T) {
	c := config.Defaults()
	c.Libraries, c.MaxJobs = []string{"no-such-library.so"}, 2
	s := newSupervisor(c, slog.New(slog.DiscardHandler))
	s.jobs["failed"] = &supervised{job: jobs.Job{Name: "failed"}, status: worker.Status{Failures: worker.Kinds{"died": 1}}}
	s.jobs["fine"] = &supervised{job: jobs.Job{Name: "fine"}}
	s.look(t.Context())
	if jobs := s.view(); len(jobs) != 1 || jobs[0].Name != "failed" || jobs[0].Ended == nil {
		t.Fatalf("%+v", jobs)
	}
	if s.full(0) {
		t.Error("one of two is full")
	}
	s.jobs["one"] = &supervised{}
	if s.full(0) || s.jobs["failed"] != nil {
		t.Error("a job that has ended takes the place of one that runs")
	}
	s.jobs["failed"] = &supervised{job: jobs.Job{Name: "failed"}, status: worker.Status{Failures: worker.Kinds{"died": 1}},
		ended: time.Now().Add(-failedStays)}
	delete(s.jobs, "one")
	if s.look(t.Context()); len(s.view()) != 0 {
		t.Errorf("it stays for ever: %+v", s.view())
	}
}

func TestWhatFailedUnderAnotherWorkerStaysTold(t *testing.T) {
	before := worker.Status{Failures: worker.Kinds{"died": 1}, Failed: &worker.Failed{PID: 1}}
	var now worker.Status
	alsoFailed(&now, &before)
	if now.Failed != before.Failed || now.Failures["died"] != 1 {
		t.Errorf("%+v", now)
	}
	now = worker.Status{Failures: worker.Kinds{"died": 1, "out_of_memory": 2}, Failed: &worker.Failed{PID: 2}}
	alsoFailed(&now, &before)
	if now.Failed.PID != 2 || now.Failures["died"] != 2 || now.Failures["out_of_memory"] != 2 || before.Failures["died"] != 1 {
		t.Errorf("%+v", now)
	}
}

// Each line of a worker's has the last failure again, decoded anew: the log has it once.
func TestAFailureIsLoggedOnce(t *testing.T) {
	var said bytes.Buffer
	s := newSupervisor(config.Defaults(), slog.New(slog.NewTextHandler(&said, nil)))
	line := func(sentence string, at int64) *worker.Failed {
		rank := int32(1)
		return &worker.Failed{At: time.Unix(at, 0), Kind: "died", Rank: &rank, Sentence: sentence}
	}
	var before *worker.Failed
	for _, f := range []*worker.Failed{nil, line("one", 1), line("one", 1), line("one", 1), line("another", 1), line("another", 2),
		line("another", 2)} {
		s.logFailed(before, &worker.Status{Job: "train", Failed: f})
		before = f
	}
	if n := strings.Count(said.String(), "job failed"); n != 3 {
		t.Errorf("%d lines of three failures:\n%s", n, said.String())
	}
}

// A verdict reaches the log, /jobs and the metrics.
func TestAVerdictIsToldEverywhere(t *testing.T) {
	said, err := os.ReadFile("testdata/hanging.jsonl") // of package worker's test
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := newSupervisor(config.Defaults(), slog.New(slog.NewTextHandler(&log, nil)))
	job := &supervised{job: jobs.Job{Name: "train"}}
	s.jobs["train"] = job
	for line := range bytes.Lines(said) {
		var status worker.Status
		if err := json.Unmarshal(line, &status); err != nil {
			t.Fatal(err)
		}
		s.logHang(job.status.Hang, &status)
		job.status = status
	}
	if text := log.String(); strings.Count(text, "job is blocked") != 1 || !strings.Contains(text, "rank 1 has not come (at deep.py:1 ") ||
		!strings.Contains(text, "kind=missing") {
		t.Error(text)
	}
	told := get(t, s, "/jobs")
	for _, want := range []string{`"sequence_number": 120`, `"kind": "missing"`, `"over": null`, "deep.py", `"since": "2027-`} {
		if !strings.Contains(told, want) {
			t.Errorf("/jobs has no %s", want)
		}
	}
	all := scraped(t, s)
	for _, c := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{1, "ebpfprof_hangs_total", []string{"training_job=train", "kind=missing"}},
		{0, "ebpfprof_hangs_total", []string{"training_job=train", "kind=mismatch"}},
		{2, "ebpfprof_hang_ranks", []string{"training_job=train", "role=waiting"}},
		{1, "ebpfprof_hang_ranks", []string{"training_job=train", "role=missing"}},
	} {
		if got := value(t, all, c.name, c.labels...); got != c.want {
			t.Errorf("%s %v is %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	if n := len(all["ebpfprof_hangs_total"].GetMetric()); n != len(hang.Kinds()) {
		t.Errorf("%d series of one job", n)
	}
}

func get(t *testing.T, s *supervisor, path string) string {
	t.Helper()
	answer := httptest.NewRecorder()
	s.handler().ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
	if answer.Code != 200 {
		t.Fatalf("%s: %d", path, answer.Code)
	}
	return answer.Body.String()
}
