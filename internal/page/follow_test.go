package page_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/page"
	"github.com/ebpfprof/ebpfprof/internal/page/progress"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// recording is a dataset that is being written, second by second.
type recording struct {
	t    *testing.T
	dir  string
	data *output.Dataset
	next int64 // second
}

func begin(t *testing.T) *recording {
	t.Helper()
	r := &recording{t: t, dir: filepath.Join(t.TempDir(), "d")}
	var err error
	if r.data, err = output.Create(r.dir, output.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.data.Close() })
	if err := r.data.Session(event.Recording{ID: "s", StartedNS: epoch, Host: "h"}); err != nil {
		t.Fatal(err)
	}
	err = r.data.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 7, StartedNS: epoch, Command: "python3 train.py"}},
		Threads: []event.Thread{{PID: 7, TID: 7, Name: "python3", Role: new("main")}}})
	if err != nil {
		t.Fatal(err)
	}
	r.second(7)
	return r
}

// second adds one of a thread with ten operators in it, and rotates.
func (r *recording) second(tid int32) {
	r.t.Helper()
	call := &event.Call{Layer: "op", Name: "aten::addmm"}
	b := &event.Batch{}
	for i := range int64(10) {
		b.Spans = append(b.Spans, event.Span{ID: r.next*10 + i + 1, StartNS: epoch + r.next*1e9 + i*1e8, DurationNS: 5e7, PID: 7, TID: tid,
			Call: call, End: event.EndExitSite, Weight: 1, SequenceNumber: -1})
	}
	b.Samples = append(b.Samples, event.Sample{TSNS: epoch + r.next*1e9, PID: 7, TID: tid, State: event.OnCPU, WeightNS: 5e8})
	r.next++
	if err := errors.Join(r.data.Write(b), r.data.Rotate()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *recording) end() {
	r.t.Helper()
	ended := event.Recording{ID: "s", StartedNS: epoch, Host: "h", EndedNS: new(int64(epoch) + r.next*1e9)}
	if err := errors.Join(r.data.Session(ended), r.data.Close()); err != nil {
		r.t.Fatal(err)
	}
}

func TestAPageFollowsARecording(t *testing.T) {
	r := begin(t)
	c := serve(t, r.dir, page.Options{})
	now := c.status(func(pageState) bool { return true })
	if !now.Recording {
		t.Fatalf("%+v", now)
	}
	first := c.built()
	r.second(8)
	now = c.status(func(s pageState) bool { return s.Edition > now.Edition })
	l := c.built()
	if l.Rows != 20 || len(l.Lanes) != 2 || first.Lanes[0].Number != l.Lanes[0].Number || l.Lanes[0].TID != 7 ||
		first.Lanes[0].Thread != l.Lanes[0].Thread {
		t.Errorf("first %+v, then %+v", first, l)
	}
	var live struct {
		Operators []*float64 `json:"operators_per_second"`
		CPUs      []float64  `json:"cpus_busy"`
		Calls     int64
		Recording bool
	}
	if err := json.Unmarshal([]byte(c.get("/api/live")), &live); err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, v := range live.Operators {
		if v != nil {
			total += *v
		}
	}
	if total < 19.9 || total > 20.1 || live.Calls != 20 || !live.Recording || len(live.CPUs) != len(live.Operators) {
		t.Errorf("%v operators in %+v", total, live)
	}
	if said := c.get("/api/recorder"); said != "null\n" {
		t.Error(said)
	}
	r.end()
	if now = c.status(func(s pageState) bool { return !s.Recording }); now.Gone || now.Problem != "" {
		t.Errorf("%+v", now)
	}
	// Of a recording that has ended the report is the command line's again.
	if got, want := c.get("/api/report"), report(t, r.dir); got != want {
		t.Errorf("the page has %d bytes, the command line %d", len(got), len(want))
	}
}

// What the recorder says reaches the page as it is.
func TestTheRecordersWordsReachThePage(t *testing.T) {
	server, c := serveBoth(t, begin(t).dir, page.Options{})
	server.Say(progress.Line{Events: 7, Lost: map[string]uint64{"ring_full": 3}})
	var line progress.Line
	if err := json.Unmarshal([]byte(c.get("/api/recorder")), &line); err != nil || line.Events != 7 || line.Lost["ring_full"] != 3 {
		t.Errorf("%+v, %v", line, err)
	}
}
