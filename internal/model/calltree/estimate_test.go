package calltree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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

// sliced writes a job of two groups of probes in slices of a few steps, with calls that differ from
// step to step, some of them in steps that a slice cut, and one that was recorded whole.
func sliced(t *testing.T, seed uint64, between func(*output.Dataset) error) *dataset.DB {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 5))
	var rows []event.Span
	var slices []event.Slice
	at := int64(1e15)
	call := func(name, layer string, duration int64, weight float64, slice int64, step int32) {
		rows = append(rows, event.Span{ID: int64(len(rows) + 1), StartNS: at, DurationNS: duration, PID: 7, TID: 7,
			Call:   &event.Call{Layer: layer, Name: name},
			Weight: weight, SequenceNumber: -1, SliceID: slice, SliceStep: step})
		at += duration
	}
	for range 3 + random.IntN(4) {
		for _, group := range []string{"op", "runtime"} {
			n := 1 + random.IntN(4)
			id := int64(len(slices) + 1)
			s := event.Slice{ID: id, PID: 7, Group: group, BeginNS: at, FromNS: at, Phase: event.PhaseTraining, Unit: []string{event.UnitSteps,
				event.UnitTime}[seed%2],
				Recorded: float64(n), Represented: float64(n * (1 + random.IntN(6))), Steps: int32(n)}
			weight := s.Represented / s.Recorded
			for step := range n {
				for range random.IntN(5) {
					call("aten::mm", map[string]string{"op": "op", "runtime": "runtime"}[group], 1000+random.Int64N(500), weight, id, int32(step+1))
				}
			}
			at += 1e6
			s.EndNS, s.ToNS = at, at
			slices = append(slices, s)
		}
	}
	call("aten::whole", "op", 700, 1, 0, 0)
	dir := filepath.Join(t.TempDir(), "d")
	d, err := output.Create(dir, output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(d.Session(event.Recording{ID: "s", StartedNS: 1e15}), d.Write(&event.Batch{Processes: []event.Process{{ID: 7, PID: 7}}}),
		d.Write(&event.Batch{Slices: slices}), d.Write(&event.Batch{Spans: rows}))
	if between != nil {
		err = errors.Join(err, between(d))
	}
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	db, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := lint.Run(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return db
}

func loaded(t *testing.T, db *dataset.DB) *Node {
	t.Helper()
	tree, err := Load(t.Context(), db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestIntervalsAreThoseOfTheView operator_estimate, of names that stand at one place.
func TestIntervalsAreThoseOfTheView(t *testing.T) {
	compared, open := 0, 0
	for seed := range uint64(20) {
		db := sliced(t, seed, nil)
		tree := loaded(t, db)
		intervals := tree.Intervals("host_ns")
		for _, c := range tree.Children(tree.Inclusive("host_ns")) {
			layer := map[Kind]string{Operator: "op", Call: "runtime"}[c.Kind]
			var calls, recorded, low, total float64
			var high *float64
			err := db.Row(t.Context(), "SELECT recorded, calls, total_lo_ns, total_hi_ns, total_ns FROM operator_estimate WHERE layer = ? "+
				"AND name = ?",
				[]any{layer, c.Name}, &recorded, &calls, &low, &high, &total)
			if err != nil {
				t.Fatal(err)
			}
			i, estimated := intervals[c]
			if c.Name == "aten::whole" {
				if estimated {
					t.Errorf("seed %d: what was recorded whole is no estimate: %+v", seed, i)
				}
				continue
			}
			if compared++; high == nil {
				if open++; !math.IsNaN(i.High) {
					t.Errorf("seed %d, %s %s: nothing tells the upper end, and it is %v", seed, layer, c.Name, i.High)
				}
				continue
			}
			// The view's are whole nanoseconds, rounded outwards.
			if !estimated || math.Abs(i.Low-low) > 1 || math.Abs(i.High-*high) > 1 || !(i.Low <= total && total <= i.High) {
				t.Errorf("seed %d, %s %s: %v to %v, the view %v to %v", seed, layer, c.Name, i.Low, i.High, low, *high)
			}
		}
	}
	if compared < 30 || open == compared {
		t.Errorf("%d intervals compared, %d open", compared, open)
	}
}

func TestTreeSaysHowFarOffItMayBe(t *testing.T) {
	tree := loaded(t, sliced(t, 3, nil))
	intervals, total := tree.Intervals("host_ns"), tree.Inclusive("host_ns")
	all := intervals[tree]
	if !(all.Low < total[tree] && total[tree] < all.High) {
		t.Fatalf("%v of %v", all, total[tree])
	}
	var text, written bytes.Buffer
	if err := errors.Join(tree.Write(&text, "host_ns", Style{}), tree.WriteJSON(&written, "host_ns")); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("in all, ± %.0f %%", 100*(all.High-total[tree])/total[tree])
	if !strings.Contains(text.String(), want) || !strings.Contains(text.String(), "± %") {
		t.Errorf("the text lacks %q:\n%s", want, &text)
	}
	var nodes []map[string]any
	if err := json.Unmarshal(written.Bytes(), &nodes); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		_, has := n["inclusive_lo"]
		if estimate := n["name"] != "aten::whole"; has != estimate {
			t.Errorf("%v", n)
		}
	}
	// From the leaves on, and merged with nothing, they are the same.
	turned, merged := tree.Turned("host_ns"), New()
	merged.Merge(tree)
	for _, o := range []*Node{turned, merged} {
		if got := o.Intervals("host_ns")[o]; math.Abs(got.Low-all.Low) > 1e-6 || math.Abs(got.High-all.High) > 1e-6 {
			t.Errorf("%v, want %v", got, all)
		}
	}
}
