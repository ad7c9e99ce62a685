package page_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/page"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// sampled has three seconds in two stacks and a wait.
func sampled(file, host string) (*event.Batch, event.Recording) {
	frame := func(function string, line int32) event.Frame {
		return event.Frame{Kind: "python", Function: function, File: file, Line: line, Offset: -1}
	}
	one, two := int64(1), int64(2)
	return &event.Batch{
		Stacks: []event.Stack{
			{ID: 1, Folded: "main;step", Status: event.StackComplete, Frames: []event.Frame{frame("step", 2), frame("main", 4)}},
			{ID: 2, Folded: "main;load", Status: event.StackComplete, Frames: []event.Frame{frame("load", 3), frame("main", 5)}},
		},
		Samples: []event.Sample{
			{TSNS: epoch, PID: 7, TID: 7, State: event.OnCPU, WeightNS: 2e9, StackID: &one},
			{TSNS: epoch + 3e9, PID: 7, TID: 7, State: event.OnCPU, WeightNS: 1e9, StackID: &two},
			{TSNS: epoch + 4e9, PID: 7, TID: 7, State: event.OffCPU, WeightNS: 5e9, StackID: &two, Cause: "syscall", Syscall: "read"},
		},
	}, event.Recording{ID: "s", StartedNS: epoch, Host: host}
}

type node struct {
	N    string
	S, T int64
	C    []node
}

func (c client) flame(query string) (f struct {
	TotalNS   int64 `json:"total_ns"`
	HiddenNS  int64 `json:"hidden_ns"`
	Root      node
	Functions []struct{ Name string }
}) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.get("/api/flame"+query)), &f); err != nil {
		c.t.Fatal(err)
	}
	return f
}

func TestTheFlameGraphHasTheTimeOfTheSamples(t *testing.T) {
	b, _ := sampled("/job/train.py", "h")
	c := serve(t, write(t, b), page.Options{})
	down := c.flame("")
	if down.TotalNS != 3e9 || len(down.Root.C) != 1 || !strings.HasPrefix(down.Root.C[0].N, "main") || len(down.Root.C[0].C) != 2 ||
		down.Root.C[0].C[0].S != 2e9 {
		t.Errorf("%+v", down)
	}
	up := c.flame("?order=up")
	if up.TotalNS != 3e9 || len(up.Root.C) != 2 || !strings.HasPrefix(up.Root.C[0].N, "step") || up.Root.C[0].T != 2e9 ||
		!strings.HasPrefix(up.Root.C[1].C[0].N, "main") {
		t.Errorf("%+v", up)
	}
	if later := c.flame("?from=1000&to=3500"); later.TotalNS != 1e9 {
		t.Errorf("%+v", later)
	}
	if waiting := c.flame("?state=off_cpu"); waiting.TotalNS != 5e9 {
		t.Errorf("%+v", waiting)
	}
	if again := c.flame(""); again.TotalNS != 3e9 { // the range of another request is not left in force
		t.Errorf("%+v", again)
	}
	inside := c.flame("?below=" + strings.ReplaceAll(down.Root.C[0].N, " ", "%20"))
	if inside.Root.T != 3e9 || inside.Root.N != down.Root.C[0].N {
		t.Errorf("%+v", inside)
	}
	for query, want := range map[string]int{"?from=1&to=2": http.StatusNotFound, "?below=nobody": http.StatusNotFound,
		"?step=1": http.StatusBadRequest} {
		if answer, body := c.do("GET", "/api/flame"+query, nil); answer.StatusCode != want {
			t.Errorf("%s: %s %s", query, answer.Status, body)
		}
	}
}

func TestSourceHasTheTimeOfItsLines(t *testing.T) {
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	job := filepath.Join(dir, "train.py")
	if err := os.WriteFile(job, []byte("import torch\ndef step(): pass\ndef load(): pass  # \u202e\nstep()\nload()\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "id_rsa")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../../../../../../../etc/hostname", filepath.Join(dir, "link.py")); err != nil {
		t.Fatal(err)
	}
	read := func(file, host, source string) (s struct {
		Text  []string
		Why   string
		Lines []struct {
			Line   int64
			CPUNS  int64 `json:"cpu_ns"`
			WaitNS int64 `json:"wait_ns"`
		}
	}) {
		t.Helper()
		b, recording := sampled(file, host)
		c := serve(t, writeOf(t, recording, b), page.Options{Source: source})
		if err := json.Unmarshal([]byte(c.get("/api/source?file="+file)), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := read(job, own, "")
	if len(s.Text) != 6 || s.Text[2] != `def load(): pass  # \u202e` || len(s.Lines) != 4 || s.Lines[0].Line != 2 || s.Lines[0].CPUNS != 2e9 ||
		s.Lines[3].CPUNS != 1e9 || s.Lines[3].WaitNS != 5e9 {
		t.Errorf("%+v", s)
	}
	if s := read("/elsewhere/of/train.py", "another", dir); len(s.Text) != 6 {
		t.Errorf("below --source: %+v", s)
	}
	for name, of := range map[string]struct{ file, host, why string }{
		"another machine":  {job, "another", "of another machine"},
		"no host":          {job, "", "of another machine"},
		"no source":        {secret, own, "only Python files"},
		"a link elsewhere": {filepath.Join(dir, "link.py"), own, "escapes"},
		"nothing":          {filepath.Join(dir, "gone.py"), own, "no such file"},
	} {
		if s := read(of.file, of.host, ""); len(s.Text) != 0 || !strings.Contains(s.Why, of.why) || len(s.Lines) != 4 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	b, recording := sampled(job, own)
	c := serve(t, writeOf(t, recording, b), page.Options{})
	if answer, body := c.do("GET", "/api/source?file="+filepath.Join(dir, "link.py"), nil); answer.StatusCode != http.StatusNotFound {
		t.Errorf("a file that no stack names: %s %s", answer.Status, body)
	}
}
