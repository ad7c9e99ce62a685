package analysis

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/source"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// recording is a dataset of a training loop with what was planted in it.
type recording struct {
	t       *testing.T
	dataset *output.Dataset
	dir     string
	ns      int64
	next    int64
	live    map[int64]int64
	now     int64
	peak    int64
	weight  float64
}

const pid = 4711

// allocationNS and freeNS are how long each takes.
var allocationNS, freeNS = int64(2000), int64(500)

// category of spans, as the tracer writes it.
var category = map[string]string{"Engine::execute": "backward"}

func newRecording(t *testing.T) *recording {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dataset")
	d, err := output.Create(dir, output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{t: t, dataset: d, dir: dir, ns: 1_700_000_000_000_000_000, live: map[int64]int64{}, weight: 1}
	r.must(d.Session(event.Recording{ID: "s", StartedNS: r.ns}))
	return r
}

func (r *recording) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// stack is a line of the user's file train.py below frames of torch.
func (r *recording) stack(id, line int64, function string) {
	frames := []event.Frame{
		{Kind: symbolize.Python, Function: "Linear.forward", File: "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py", Line: 114},
		{Kind: symbolize.Python, Function: function, File: "/home/user/train.py", Line: int32(line)},
		{Kind: symbolize.Python, Function: "<module>", File: "/home/user/train.py", Line: 99},
	}
	r.must(r.dataset.Write(&event.Batch{Stacks: []event.Stack{{ID: id, Frames: frames, Folded: function, Status: "complete"}}}))
}

func (r *recording) alloc(stack, span, bytes int64) int64 {
	r.ns += 1000
	r.next++
	m := event.Memory{TSNS: r.ns, PID: pid, TID: pid, Space: "host", Level: "allocator", Action: "alloc", Address: r.next << 12,
		Bytes: &bytes, DurationNS: &allocationNS, SpanID: span, Weight: r.weight}
	if stack != 0 {
		m.StackID = &stack
	}
	r.must(r.dataset.Write(&event.Batch{Memory: []event.Memory{m}}))
	r.live[m.Address] = bytes
	r.now += bytes
	r.peak = max(r.peak, r.now)
	return m.Address
}

func (r *recording) free(address int64) {
	r.ns += 1000
	bytes := r.live[address]
	r.must(r.dataset.Write(&event.Batch{Memory: []event.Memory{{TSNS: r.ns, PID: pid, TID: pid, Space: "host", Level: "allocator",
		Action:  "free",
		Address: address, Bytes: &bytes, DurationNS: &freeNS, Weight: r.weight}}}))
	r.now -= bytes
	delete(r.live, address)
}

func (r *recording) span(id, parent int64, layer, name string, stack int64) {
	s := event.Span{ID: id, ParentID: parent, StartNS: r.ns, DurationNS: 1, PID: pid, TID: pid, Call: &event.Call{Layer: layer, Name: name,
		Category: category[name]}, Weight: 1}
	if stack != 0 {
		s.Detail = &event.Detail{StackID: &stack}
	}
	r.must(r.dataset.Write(&event.Batch{Spans: []event.Span{s}}))
}

// planted has a leak (line 11), a growth (line 22) and a peak that a backward node
// makes, whose forward operator is at line 33.
func planted(t *testing.T) *recording {
	r := newRecording(t)
	r.stack(1, 11, "leak")
	r.stack(2, 22, "Grower.grow")
	r.stack(3, 33, "Net.forward")
	r.stack(4, 44, "main")
	weights := r.alloc(4, 0, 300_000)
	grown := int64(0)
	var gradient int64
	for step := range int64(12) {
		base := 100 * (step + 1)
		r.span(base+1, 0, "op", "aten::mul", 3)
		activation := r.alloc(3, base+1, 50_000)
		r.ns += 1000
		r.span(base+2, 0, "autograd", "Engine::execute", 0)
		r.span(base+3, base+2, "autograd", "MulBackward0", 0)
		r.must(r.dataset.Write(&event.Batch{Flows: []event.Flow{{TSNS: r.ns, FromSpanID: base + 1, ToSpanID: base + 3, Kind: "forward_backward",
			Method: "sequence_number"}}}))
		large := r.alloc(4, base+3, 4_000_000)
		if gradient != 0 {
			r.free(gradient)
		}
		gradient = r.alloc(4, base+3, 20_000)
		r.free(large)
		r.free(activation)
		r.alloc(1, 0, 1000)
		before := grown
		grown = r.alloc(2, 0, 500*(step+1))
		if before != 0 {
			r.free(before)
		}
	}
	r.free(weights)
	r.must(r.dataset.Close())
	return r
}

// TestPlantedCulpritsComeFirst: the leak, the growth, and the peak, which is the
// backward's, under the line of its forward operator.
func TestPlantedCulpritsComeFirst(t *testing.T) {
	r := planted(t)
	m, err := Load(context.Background(), r.dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	a := m.Arenas[0]
	if a.PeakBytes != r.peak {
		t.Errorf("peak %d, counted beside it %d", a.PeakBytes, r.peak)
	}
	if a.Partial || a.FreedUnknown != 0 || a.Steps < 9 {
		t.Errorf("partial %v, frees of unknown blocks %d, steps %d", a.Partial, a.FreedUnknown, a.Steps)
	}
	if a.AllocationUS == nil || *a.AllocationUS != 2*a.PerStep || a.FreeUS == nil || *a.FreeUS <= 0.5 || *a.FreeUS > 0.5*a.PerStep {
		t.Errorf("%v allocations a step take %v us, frees %v", a.PerStep, a.AllocationUS, a.FreeUS)
	}
	if top := a.Holders.ByLine[0]; !strings.Contains(top.Key, "train.py:33 ") || top.Bytes < 4_000_000 {
		t.Errorf("holds the peak: %+v", a.Holders.ByLine)
	}
	if top := a.Holders.ByOperator[0]; top.Key != "MulBackward0" {
		t.Errorf("operator at the peak: %+v", top)
	}
	if top := a.Holders.ByModule[0]; top.Key != "Net/Linear" {
		t.Errorf("module at the peak: %+v", a.Holders.ByModule)
	}
	if len(a.Growth) != 2 || !strings.Contains(a.Growth[0].Line, "train.py:11 ") || a.Growth[0].Kind != "leak" ||
		a.Growth[0].BytesPerStep < 990 || a.Growth[0].BytesPerStep > 1010 || a.Growth[0].Confidence != "high" {
		t.Errorf("growth: %+v", a.Growth)
	}
	if len(a.Growth) == 2 && (!strings.Contains(a.Growth[1].Line, "train.py:22 ") || a.Growth[1].Kind != "growth" ||
		a.Growth[1].BytesPerStepLo > 500 || a.Growth[1].BytesPerStepHi < 500) {
		t.Errorf("growth: %+v", a.Growth[1])
	}
}

// TestPlanOfADataset: the hot part is planned within its bound, the leak and what
// grows are the rest, and pictures can be drawn.
func TestPlanOfADataset(t *testing.T) {
	m, err := Load(context.Background(), planted(t).dir, pid)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p, err := m.MakePlan(context.Background(), m.Arenas[0], PlanOptions{Time: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if p.Scope != "step" || p.HotRequests != 3 || p.Peak != p.LowerBound || p.Peak < 4_070_000 || p.Peak > 4_071_000 {
		t.Errorf("%s, %d requests, plan %d, bound %d", p.Scope, p.HotRequests, p.Peak, p.LowerBound)
	}
	if p.WithPlan != p.Peak+p.Rest || p.SavingBytes != p.PoolSimulated-p.WithPlan {
		t.Errorf("with the plan %d, rest %d, pool %d, saving %d", p.WithPlan, p.Rest, p.PoolSimulated, p.SavingBytes)
	}
	for _, q := range p.Requests {
		if !strings.Contains(q.Line, "train.py:33 ") {
			t.Errorf("%+v", q)
		}
	}
	var svg, picture bytes.Buffer
	if err := errors.Join(p.Picture().WriteSVG(&svg), p.Picture().WritePNG(&picture)); err != nil {
		t.Fatal(err)
	}
	if strings.Count(svg.String(), "<rect") != 1+p.HotRequests {
		t.Errorf("the picture has not %d blocks: %s", p.HotRequests, svg.String())
	}
	if _, err := png.Decode(&picture); err != nil {
		t.Error(err)
	}
	var page bytes.Buffer
	if err := m.WriteHTML(&page); err != nil || !strings.Contains(page.String(), "train.py:33") {
		t.Errorf("the page does not name the line: %v", err)
	}
}

// TestTheWarmupIsNotHeldAgainstAPlan: two steps at the beginning request the same from
// other lines. No plan serves them, and so they do not count in what the pool holds
// beside it.
func TestTheWarmupIsNotHeldAgainstAPlan(t *testing.T) {
	r := newRecording(t)
	r.stack(1, 11, "step")
	r.stack(2, 22, "warmup")
	r.stack(3, 33, "begin")
	const large = 40 << 20
	for step := range 12 {
		begin := r.alloc(3, 0, 1<<20)
		line := int64(1)
		if step < 2 {
			line = 2
		}
		activation := r.alloc(line, 0, large)
		r.free(r.alloc(line, 0, 4096))
		r.free(activation)
		r.free(begin)
	}
	r.must(r.dataset.Close())
	m, err := Load(context.Background(), r.dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p, err := m.MakePlan(context.Background(), m.Arenas[0], PlanOptions{Time: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if p.HotRequests != 3 || p.Warmup == 0 || p.Warmup >= p.Steps-2 || p.Rest != 0 {
		t.Errorf("%d requests recur; of %d steps %d are the warm-up, and the rest's pool holds %d", p.HotRequests, p.Steps, p.Warmup, p.Rest)
	}
	if p.PoolSimulated < large || p.SavingBytes != p.PoolSimulated-p.WithPlan {
		t.Errorf("the pool %d, the plan %d, saving %d", p.PoolSimulated, p.WithPlan, p.SavingBytes)
	}
	if !strings.Contains(strings.Join(p.Notes, " "), "left out of the comparison") {
		t.Errorf("nothing is said of it: %q", p.Notes)
	}
}

// TestSlicesAndEmptinessAreSaid: what was recorded in slices says which flag helps,
// and a dataset without events is an error.
func TestSlicesAndEmptinessAreSaid(t *testing.T) {
	r := newRecording(t)
	r.must(r.dataset.Close())
	if _, err := Load(context.Background(), r.dir, 0); !errors.Is(err, source.ErrNoEvents) {
		t.Errorf("an empty recording: %v", err)
	}
	r = newRecording(t)
	r.weight = 4
	r.free(r.alloc(0, 0, 64))
	r.must(r.dataset.Close())
	m, err := Load(context.Background(), r.dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if !m.Arenas[0].Partial || m.Arenas[0].SlicedEvents != 2 {
		t.Errorf("slices: %+v", m.Arenas[0])
	}
	if p, err := m.MakePlan(context.Background(), m.Arenas[0], PlanOptions{Time: time.Second}); err != nil ||
		!strings.Contains(strings.Join(p.Notes, " "), "--budget off") {
		t.Errorf("a plan of slices: %v, %v", p, err)
	}
	if _, err := Load(context.Background(), r.dir, 1); !errors.Is(err, ErrNoSuchArena) {
		t.Errorf("another process: %v", err)
	}
}

// TestSnapshotsKeepThePeak: exported and read back, the peak is the same to the
// byte, and so are the lines.
func TestSnapshotsKeepThePeak(t *testing.T) {
	r := planted(t)
	m, err := Load(context.Background(), r.dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, atPeak := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "snapshot.pickle")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(m.Export(context.Background(), file, atPeak), file.Close()); err != nil {
			t.Fatal(err)
		}
		back, err := Load(context.Background(), path, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer back.Close()
		if back.Arenas[0].PeakBytes != r.peak {
			t.Errorf("at the peak %v: %d, was %d", atPeak, back.Arenas[0].PeakBytes, r.peak)
		}
		if atPeak && back.Arenas[0].EndBytes != r.peak {
			t.Errorf("what ends at the peak has %d live bytes, the peak is %d", back.Arenas[0].EndBytes, r.peak)
		}
	}
}
