package page_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/page"
	"github.com/ebpfprof/ebpfprof/internal/page/pyramid"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

const epoch = 1_790_000_000_000_000_000

// write makes a dataset of one batch.
func write(t testing.TB, b *event.Batch) string {
	t.Helper()
	return writeOf(t, event.Recording{ID: "s", StartedNS: epoch, EndedNS: new(int64(epoch + 2_000_000_000)), Host: "h"}, b)
}

func writeOf(t testing.TB, recording event.Recording, b *event.Batch) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	d, err := output.Create(dir, output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(d.Session(recording), d.Write(b), d.Close())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// loop is a thread that calls an operator with one inside 1,000 times, and waits between; probes recorded a half of it.
func loop() *event.Batch {
	outer, inner := &event.Call{Layer: "op", Name: "aten::linear"}, &event.Call{Layer: "op", Name: "aten::addmm"}
	b := &event.Batch{
		Processes: []event.Process{{ID: 1, PID: 7, StartedNS: epoch, Command: "python3 train.py"}},
		Threads:   []event.Thread{{PID: 7, TID: 7, Name: "python3", Role: new("main")}},
		Slices: []event.Slice{{ID: 1, PID: 7, Group: "op", BeginNS: epoch, EndNS: epoch + 5e8, FromNS: epoch, ToNS: epoch + 1e9,
			Phase: "training", Unit: "time", Recorded: 1, Represented: 2}},
		Stacks: []event.Stack{{ID: 5, Folded: "main;step", Status: event.StackComplete,
			Frames: []event.Frame{{Kind: "python", Function: "step", File: "/job/train.py", Line: 12, Offset: -1}, {Kind: "python", Function: "main",
				File: "/job/train.py", Line: 30, Offset: -1}}}},
	}
	stack := int64(5)
	for i := range int64(500) {
		at := epoch + i*1e6
		b.Spans = append(b.Spans,
			event.Span{ID: 2*i + 1, StartNS: at, DurationNS: 500_000, PID: 7, TID: 7, Call: outer, End: event.EndExitSite, Weight: 2,
				SequenceNumber: -1, PythonStackID: 5, PythonStackSource: event.LineOwn},
			event.Span{ID: 2*i + 2, ParentID: 2*i + 1, StartNS: at + 100_000, DurationNS: 300_000, PID: 7, TID: 7, Call: inner,
				End: event.EndExitSite, Weight: 2, SequenceNumber: -1})
	}
	for i := range int64(100) {
		b.Samples = append(b.Samples, event.Sample{TSNS: epoch + i*1e7, PID: 7, TID: 7, State: event.OnCPU, WeightNS: 1e7, StackID: &stack})
	}
	b.Samples = append(b.Samples, event.Sample{TSNS: epoch + 4e8, PID: 7, TID: 7, State: event.OffCPU, WeightNS: 2e8, ReadyNS: 5e7,
		Cause: "syscall", Syscall: "futex", StackID: &stack})
	return b
}

type unpacked struct {
	Count     int         `json:"count"`
	FromNS    int64       `json:"from_ns"`
	UnitNS    int64       `json:"unit_ns"`
	BinNS     int64       `json:"bin_ns"`
	Coarsened int         `json:"coarsened"`
	Partial   bool        `json:"partial"`
	Names     [][2]string `json:"names"`
	start     []uint32
	duration  []uint32
	calls     []uint32
	name      []uint16
	lane      []uint16
	depth     []uint8
	flags     []uint8
	busy      []uint8
}

func unpack(t *testing.T, body string) (u unpacked) {
	t.Helper()
	head := int(binary.LittleEndian.Uint32([]byte(body)))
	if err := json.Unmarshal([]byte(body[4:4+head]), &u); err != nil {
		t.Fatal(err)
	}
	rest := []byte(body[4+head:])
	if len(rest) != 20*u.Count {
		t.Fatalf("%d bytes of %d rectangles", len(rest), u.Count)
	}
	for i := range u.Count {
		u.start = append(u.start, binary.LittleEndian.Uint32(rest[4*i:]))
		u.duration = append(u.duration, binary.LittleEndian.Uint32(rest[4*(u.Count+i):]))
		u.calls = append(u.calls, binary.LittleEndian.Uint32(rest[4*(2*u.Count+i):]))
		u.name = append(u.name, binary.LittleEndian.Uint16(rest[12*u.Count+2*i:]))
		u.lane = append(u.lane, binary.LittleEndian.Uint16(rest[14*u.Count+2*i:]))
	}
	small := rest[16*u.Count:]
	u.depth, u.flags, u.busy = small[:u.Count], small[u.Count:2*u.Count], small[2*u.Count:3*u.Count]
	return u
}

// built waits until all calls are read.
func (c client) built() (l struct {
	Done  bool
	Rows  int64
	Total int64
	Lanes []struct {
		Number, Thread, Depth int
		TID                   int32
		Name, Role, Kind      string
		Calls                 int64
		Sampled               bool
	}
}) {
	c.t.Helper()
	for !l.Done {
		if err := json.Unmarshal([]byte(c.get("/api/lanes")), &l); err != nil {
			c.t.Fatal(err)
		}
	}
	return l
}

func TestTheTimelineHasEveryCall(t *testing.T) {
	c := serve(t, write(t, loop()), page.Options{})
	l := c.built()
	if len(l.Lanes) != 1 || l.Rows != 1000 || l.Lanes[0].Name != "python3" || l.Lanes[0].Role != "main" || l.Lanes[0].Depth != 2 ||
		!l.Lanes[0].Sampled {
		t.Fatalf("%+v", l)
	}
	for _, pixels := range []int{10, 100, 1000, 100_000} {
		u := unpack(t, c.get(fmt.Sprintf("/api/timeline?from=0&until=1000000000&pixels=%d&lanes=0&depth=9", pixels)))
		calls := map[uint8]uint32{}
		for i := range u.Count {
			calls[u.depth[i]] += u.calls[i]
			// The name in a cell of both depths' calls is that of its own depth.
			if want := []string{"aten::linear", "aten::addmm"}[u.depth[i]]; u.Names[u.name[i]][0] != want && u.flags[i] != 0 {
				t.Errorf("%d pixels: depth %d has %s", pixels, u.depth[i], u.Names[u.name[i]][0])
			}
			if cell := u.flags[i]&pyramid.Cell != 0; cell && u.busy[i] == 0 || cell != (u.BinNS > 300_000) && u.BinNS <= 300_000 {
				t.Errorf("%d pixels: %d of 255 busy, bins of %d ns, flags %d", pixels, u.busy[i], u.BinNS, u.flags[i])
			}
		}
		if calls[0] != 500 || calls[1] != 500 {
			t.Errorf("%d pixels: %v calls", pixels, calls)
		}
	}
}

func TestABoxHasWhatRanInIt(t *testing.T) {
	dir := write(t, loop())
	c := serve(t, dir, page.Options{})
	c.built()
	var s struct {
		SQL  string
		Rows []struct {
			Name        string
			Calls       int64
			Represented float64
			TimeNS      int64 `json:"time_ns"`
		}
		CPUNS int64 `json:"cpu_ns"`
		OffNS int64 `json:"wait_ns"`
	}
	// From the middle of the third outer call to its end.
	if err := json.Unmarshal([]byte(c.get("/api/selection?from=2250000&until=402500000&lanes=0")), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Rows) != 2 || s.Rows[0].Name != "aten::linear" || s.Rows[0].Calls != 400 || s.Rows[0].Represented != 800 ||
		s.Rows[0].TimeNS != 250_000+400*500_000 {
		t.Errorf("%+v", s.Rows)
	}
	if s.CPUNS != 40*1e7 || s.OffNS != 2_500_000 {
		t.Errorf("%d ns on the CPU, %d ns waiting", s.CPUNS, s.OffNS)
	}
	db, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var time int64
	if err := db.Row(t.Context(), "SELECT sum(time_ns)::BIGINT FROM ("+s.SQL+")", nil, &time); err != nil || time != s.Rows[0].TimeNS+
		s.Rows[1].TimeNS {
		t.Errorf("the query that is shown finds %d ns, %v", time, err)
	}
}

func TestACallHasItsColumnsAndItsStack(t *testing.T) {
	c := serve(t, write(t, loop()), page.Options{})
	c.built()
	body := c.get("/api/call?lane=0&at=2100000&unit=1&duration=300000")
	if !strings.Contains(body, `"span_id":"6"`) || !strings.Contains(body, `["parent_id","5"]`) {
		t.Error(body)
	}
	body = c.get("/api/call?lane=0&at=0&unit=1&id=5")
	if !strings.Contains(body, `"start_ns":2000000`) || !strings.Contains(body, `{"function":"step","file":"/job/train.py","line":12}`) {
		t.Error(body)
	}
	if answer, body := c.do("GET", "/api/call?lane=0&at=900000000&unit=1", nil); answer.StatusCode != http.StatusNotFound {
		t.Errorf("%s %s", answer.Status, body)
	}
}

func TestStripsHaveSamplesAndWhatWasRecorded(t *testing.T) {
	c := serve(t, write(t, loop()), page.Options{})
	c.built()
	for _, pixels := range []int{20, 1000} {
		var s struct {
			BinNS    int64 `json:"bin_ns"`
			Bins     []struct{ CPU, Wait int64 }
			Waits    []struct{ At, NS, Ready int64 }
			Recorded []struct {
				PID    int32
				Within [][2]int64
			}
		}
		if err := json.Unmarshal([]byte(c.get(fmt.Sprintf("/api/strips?from=0&until=1000000000&pixels=%d&threads=0", pixels))), &s); err != nil {
			t.Fatal(err)
		}
		var cpu, wait int64
		for _, b := range s.Bins {
			cpu, wait = cpu+b.CPU, wait+b.Wait
		}
		for _, w := range s.Waits {
			wait += w.NS
		}
		if cpu != 1e9 || wait != 2e8 {
			t.Errorf("bins of %d ns: %d ns on the CPU, %d ns waiting", s.BinNS, cpu, wait)
		}
		if len(s.Recorded) != 1 || s.Recorded[0].PID != 7 || len(s.Recorded[0].Within) != 1 || s.Recorded[0].Within[0] != [2]int64{0, 5e8} {
			t.Errorf("%+v", s.Recorded)
		}
	}
}

func TestWindowsThatCannotBeMeantAreRefused(t *testing.T) {
	c := serve(t, write(t, loop()), page.Options{})
	c.built()
	for _, path := range []string{
		"/api/timeline?from=5&until=5", "/api/timeline?from=x&until=5", "/api/timeline?from=0&until=99999999999999999999",
		"/api/timeline?from=0&until=5&lanes=-1",
		"/api/timeline?from=0&until=5&lanes=" + strings.Repeat("0,", 300), "/api/timeline?from=0&until=5&pixels=0",
		"/api/timeline?from=0&until=5&depth=-1",
		"/api/strips?from=0&until=5&threads=9", "/api/strips?from=0&until=5&threads=0)", "/api/selection?from=0&until=5", "/api/call?lane=0",
		"/api/call?lane=0&at=1&unit=1&id=1%3B",
	} {
		if answer, body := c.do("GET", path, nil); answer.StatusCode != http.StatusBadRequest || !strings.Contains(body, `"error":`) {
			t.Errorf("%.80s: %s %.200s", path, answer.Status, body)
		}
	}
}

func TestARecordingWithoutRowsIsAnswered(t *testing.T) {
	c := serve(t, write(t, &event.Batch{}), page.Options{})
	if l := c.built(); len(l.Lanes) != 0 || l.Total != 0 {
		t.Errorf("%+v", l)
	}
	if u := unpack(t, c.get("/api/timeline?from=0&until=5&lanes=0")); u.Count != 0 {
		t.Errorf("%+v", u)
	}
	for _, path := range []string{"/api/strips?from=0&until=5", "/api/steps?from=0&until=5", "/api/report", "/api/dataset"} {
		c.get(path)
	}
}
