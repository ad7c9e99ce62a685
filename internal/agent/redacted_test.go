package agent

import (
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/redact"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

type stacksSeen struct {
	files []string
}

// Write implements event.Sink.
func (s *stacksSeen) Write(b *event.Batch) error {
	for _, row := range b.Stacks {
		for _, f := range row.Frames {
			s.files = append(s.files, f.File)
		}
	}
	return nil
}

// With redact: true a job is called by a pseudonym from where it is found on, so that
// neither the store nor what the agent serves has its name; a filter still goes by it.
func TestAJobThatIsRedactedHasAPseudonymEverywhere(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, redacted := range []bool{false, true} {
		c := config.Defaults()
		c.Libraries, c.Job, c.Only, c.Redact = []string{filepath.Base(self)}, "secret-model", []string{"secret-*"}, redacted
		var log strings.Builder
		s := newSupervisor(c, slog.New(slog.NewTextHandler(&log, nil)))
		s.discover.Own = -1
		s.look(t.Context())
		want := "secret-model"
		if redacted {
			want = redact.Pseudonym(want)
		}
		if len(s.jobs) != 1 || s.jobs[want] == nil || s.jobs[want].job.Name != want {
			t.Fatalf("redacted %v: the jobs are %v", redacted, s.jobs)
		}
		said := log.String()
		for _, path := range []string{"/metrics", "/jobs"} {
			r := httptest.NewRecorder()
			s.handler().ServeHTTP(r, httptest.NewRequest("GET", path, nil))
			said += r.Body.String()
		}
		if strings.Contains(said, "secret-model") == redacted {
			t.Errorf("redacted %v: the agent says\n%s", redacted, said)
		}
		seen := &stacksSeen{}
		stack := event.Stack{ID: 1, Frames: []symbolize.Frame{{Kind: symbolize.Python, Function: "step", File: "/home/jane/project/train.py"}}}
		if err := c.Sink(seen).Write(&event.Batch{Stacks: []event.Stack{stack}}); err != nil {
			t.Fatal(err)
		}
		if len(seen.files) != 1 || strings.Contains(seen.files[0], "jane") == redacted {
			t.Errorf("redacted %v: patterns are made of %v", redacted, seen.files)
		}
	}
}
