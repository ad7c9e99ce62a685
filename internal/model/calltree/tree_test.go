package calltree

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/lint"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// TestSpreadIsThatOfTwoPasses also where the mean is large beside the spread.
func TestSpreadIsThatOfTwoPasses(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, offset := range []float64{0, 1e3, 1e9} {
		values := make([]float64, 5000)
		sum := 0.0
		for i := range values {
			values[i] = offset + random.ExpFloat64()*100
			sum += values[i]
		}
		mean, square := sum/float64(len(values)), 0.0
		for _, v := range values {
			square += (v - mean) * (v - mean)
		}
		want := math.Sqrt(square / float64(len(values)-1))
		var whole Metric
		parts := make([]Metric, 7)
		for i, v := range values {
			whole.Add(v, 1)
			parts[i%len(parts)].Add(v, 1)
		}
		var merged Metric
		for _, p := range parts {
			merged.Merge(p)
		}
		tolerance := 1e-9 * max(want, offset*1e-3)
		for name, m := range map[string]Metric{"one by one": whole, "merged": merged} {
			if d := math.Abs(m.Stddev() - want); d > tolerance || m.Count != 5000 {
				t.Errorf("offset %g, %s: %.15g, want %.15g", offset, name, m.Stddev(), want)
			}
		}
	}
}

func TestAValueThatStandsForThreeCountsAsThree(t *testing.T) {
	var weighted, single Metric
	weighted.Add(10, 3)
	weighted.Add(4, 1)
	for _, v := range []float64{10, 10, 10, 4} {
		single.Add(v, 1)
	}
	if math.Abs(weighted.M2-single.M2) > 1e-9 || weighted.Count != single.Count || weighted.Sum != single.Sum || weighted.Min != 4 ||
		weighted.Max != 10 {
		t.Errorf("%+v, want %+v", weighted, single)
	}
}

// randomTree has a few hundred values at random places.
func randomTree(seed uint64) *Node {
	random := rand.New(rand.NewPCG(seed, 7))
	root := New()
	for range 300 {
		at := root
		for range random.IntN(6) + 1 {
			at = at.Child(Identity{Kind: Operator, Name: string(rune('a' + random.IntN(4)))})
		}
		at.Add("host_ns", float64(random.IntN(1000)), float64(1+random.IntN(3)))
	}
	return root
}

func equal(t *testing.T, a, b *Node, path string) {
	t.Helper()
	if len(a.children) != len(b.children) || len(a.Own) != len(b.Own) {
		t.Fatalf("%s: %d and %d children", path, len(a.children), len(b.children))
	}
	for name, m := range a.Own {
		o := b.Own[name]
		if o == nil || m.Count != o.Count || m.Min != o.Min || m.Max != o.Max || math.Abs(m.Sum-o.Sum) > 1e-6 ||
			math.Abs(m.M2-o.M2) > 1e-6*max(m.M2, 1) {
			t.Fatalf("%s: %+v and %+v", path, m, o)
		}
	}
	for id, c := range a.children {
		if b.children[id] == nil {
			t.Fatalf("%s/%s is missing", path, id.Name)
		}
		equal(t, c, b.children[id], path+"/"+id.Name)
	}
}

func TestMergeIsAssociativeAndCommutative(t *testing.T) {
	left := New()
	left.Merge(randomTree(1))
	left.Merge(randomTree(2))
	left.Merge(randomTree(3))
	right := randomTree(2)
	right.Merge(randomTree(3))
	whole := randomTree(1)
	whole.Merge(right)
	equal(t, left, whole, "")
	back := randomTree(3)
	back.Merge(randomTree(2))
	back.Merge(randomTree(1))
	equal(t, left, back, "")
}

func TestSumsOverLeavesAreTotalsAlsoFromTheLeaves(t *testing.T) {
	tree := randomTree(9)
	sum := 0.0
	var walk func(*Node)
	walk = func(n *Node) {
		if m := n.Own["host_ns"]; m != nil {
			sum += m.Sum
		}
		for _, c := range n.children {
			walk(c)
		}
	}
	walk(tree)
	if total := tree.Inclusive("host_ns")[tree]; math.Abs(total-sum) > 1e-6 {
		t.Errorf("%f, want %f", total, sum)
	}
	turned := tree.Turned("host_ns")
	if total := turned.Inclusive("host_ns")[turned]; math.Abs(total-sum) > 1e-6 {
		t.Errorf("from the leaves %f, want %f", total, sum)
	}
}

// TestATreeOfARecording: a forward operator with one inside it, its backward node
// on another thread, a launch with work, a sample.
func TestATreeOfARecording(t *testing.T) {
	t.Run("recorded", func(t *testing.T) { treeOfARecording(t, 7, 1400) }) // an edge has the time of its node
	t.Run("imported", func(t *testing.T) { treeOfARecording(t, -1, 900) }) // all edges stand at the beginning
}

func treeOfARecording(t *testing.T, sequence, edge int64) {
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	launch, correlation := int64(3), int64(3)
	stack, deep, wide := int64(11), int64(12), int64(13) // cut: of both kinds, of what is not shown
	row := func(id, tid, ts, duration int64, layer, category, name string, detail *event.Detail) event.Span {
		return event.Span{ID: id, StartNS: 1000 + ts, DurationNS: duration, PID: 1, TID: int32(tid), Weight: 1, SequenceNumber: -1,
			Detail: detail,
			Call:   &event.Call{Layer: layer, Category: category, Name: name}}
	}
	numbered := func(s event.Span) event.Span {
		s.SequenceNumber = sequence
		return s
	}
	err = errors.Join(
		d.Session(event.Recording{ID: "s"}),
		d.Write(&event.Batch{Stacks: []event.Stack{{ID: 11, Status: event.StackComplete, Frames: []event.Frame{
			{Kind: "python", Function: "forward", File: "model.py", Line: 7, Offset: -1}, {Kind: "python", Function: "main", File: "train.py",
				Line: 1, Offset: -1}}},
			{ID: 12, Status: "native_max_frames,python_max_frames", Frames: []event.Frame{{Kind: "python", Function: "deep", File: "deep.py",
				Line: 3, Offset: -1}}},
			{ID: 13, Status: "native_max_frames", Frames: []event.Frame{{Kind: "python", Function: "main", File: "train.py", Line: 1,
				Offset: -1}}}}}),
		d.Write(&event.Batch{Spans: []event.Span{
			row(1, 1, 0, 100, "op", "", "aten::linear", &event.Detail{StackID: &stack}),
			numbered(row(2, 1, 10, 60, "op", "", "aten::addmm", nil)),
			row(3, 1, 20, 5, "runtime", "launch", "cuLaunchKernel", &event.Detail{CorrelationID: &correlation}),
			row(4, 0, 50, 300, "device", "kernel", "gemm", &event.Detail{LaunchID: &launch}),
			numbered(row(5, 2, 400, 80, "autograd", "node", "AddmmBackward0", nil)),
			row(6, 2, 410, 50, "op", "", "aten::mm", nil),
		}}),
		d.Write(&event.Batch{Flows: []event.Flow{{TSNS: edge, FromSpanID: 2, ToSpanID: 5, Kind: "forward_backward"}}}),
		d.Write(&event.Batch{Samples: []event.Sample{{TSNS: 1010, PID: 1, TID: 1, State: event.OnCPU, WeightNS: 40, StackID: &stack},
			{TSNS: 1020, PID: 1, TID: 1, State: event.OnCPU, WeightNS: 30, StackID: &deep},
			{TSNS: 1030, PID: 1, TID: 1, State: event.OnCPU, WeightNS: 20, StackID: &wide}}}),
		d.Close())
	if err != nil {
		t.Fatal(err)
	}
	db, err := dataset.Open(d.Dir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := lint.Run(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	tree, err := Load(context.Background(), db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	var walk func(*Node, string)
	walk = func(n *Node, path string) {
		for name, m := range n.Own {
			got[path+" "+name] = m.Sum
		}
		for id, c := range n.children {
			walk(c, path+"/"+id.Name)
		}
	}
	walk(tree, "")
	const linear = "/main/forward/aten::linear"
	want := map[string]float64{
		linear + " host_ns": 40, linear + "/aten::addmm host_ns": 55, linear + "/aten::addmm/cuLaunchKernel host_ns": 5,
		linear + "/aten::addmm/cuLaunchKernel/gemm device_ns": 300,
		linear + "/aten::addmm/AddmmBackward0 host_ns":        30, linear + "/aten::addmm/AddmmBackward0/aten::mm host_ns": 50,
		"/main/forward cpu_ns": 40, "/[cut: python_max_frames]/deep cpu_ns": 30, "/main cpu_ns": 20,
	}
	for path, v := range want {
		if got[path] != v {
			t.Errorf("%s: %f, want %f", path, got[path], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	var text strings.Builder
	if err := tree.Write(&text, "device_ns", Style{}); err != nil || !strings.Contains(text.String(), "gpu gemm") {
		t.Errorf("%v\n%s", err, text.String())
	}
}
