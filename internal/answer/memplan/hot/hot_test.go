package hot

import (
	"context"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
)

// job makes events like a training loop's.
type job struct {
	events  []blocks.Event
	ns      int64
	next    int64
	anchors []int64
}

func (j *job) alloc(path, bytes int64) (address int64) {
	j.ns, j.next = j.ns+1, j.next+1
	j.events = append(j.events, blocks.Event{TSNS: j.ns, Action: blocks.Alloc, Address: j.next, Bytes: bytes, Path: path,
		Allocated: blocks.Unknown, Reserved: blocks.Unknown, Duration: blocks.Unknown, Weight: 1})
	return j.next
}

func (j *job) free(address int64) {
	j.ns++
	j.events = append(j.events, blocks.Event{TSNS: j.ns, Action: blocks.Free, Address: address, Bytes: blocks.Unknown,
		Allocated: blocks.Unknown, Reserved: blocks.Unknown, Duration: blocks.Unknown, Weight: 1})
}

func (j *job) lives() *blocks.Lives { return blocks.Build([]blocks.Arena{{}}, j.events)[0] }

// train runs steps: two activations, a gradient that the next step frees, and what
// else comes.
func (j *job) train(steps int, length func(step int) int64, also func(step int)) {
	j.alloc(1, 1<<20) // weights
	var gradient int64
	for k := range steps {
		first := j.alloc(2, 1000)
		second := j.alloc(3, length(k))
		j.anchors = append(j.anchors, j.ns)
		work := j.alloc(4, 500)
		j.free(work)
		j.free(second)
		if gradient != 0 {
			j.free(gradient)
		}
		gradient = j.alloc(5, 400)
		j.free(first)
		if also != nil {
			also(k)
		}
	}
}

func constant(int) int64 { return 2000 }

// TestHotPartIsWhatRecurs: three activations and the gradient, which is planned
// for the whole step; the weights are not in it.
func TestHotPartIsWhatRecurs(t *testing.T) {
	for _, method := range []string{"backward passes", "recurring allocations"} {
		j := &job{}
		j.train(12, constant, nil)
		l := j.lives()
		anchors := j.anchors
		if method != "backward passes" {
			anchors = nil
		}
		s := Cut(l, anchors, "backward passes")
		if s.Method != method || s.Whole() < 8 {
			t.Fatalf("%d steps from %s", s.Whole(), s.Method)
		}
		template := NewTemplate(l, s)
		if template == nil || len(template.Requests) != 4 || template.Share() != 1 {
			t.Fatalf("%s: template %+v", method, template)
		}
		whole := 0
		for _, r := range template.Requests {
			if r.Whole {
				whole++
				if r.Path != 5 || r.Lower != 0 || r.Upper <= template.Ticks {
					t.Errorf("%s: %+v lives for the whole step", method, r)
				}
			}
		}
		if whole != 1 {
			t.Errorf("%s: %d requests live for the whole step", method, whole)
		}
		if got, want := solve.LowerBound(template.Blocks()), int64(400+1000+2000+500); got != want {
			t.Errorf("%s: lower bound %d, want %d", method, got, want)
		}
	}
}

// TestWhatDoesNotRecurIsCold: a size that changes, a block that is kept, and one
// that comes every other step.
func TestWhatDoesNotRecurIsCold(t *testing.T) {
	j := &job{}
	j.train(16, func(k int) int64 { return int64(2000 + 10*k) }, func(k int) {
		j.alloc(6, 77) // a leak
		if k%2 == 0 {
			j.free(j.alloc(7, 300))
		}
	})
	l := j.lives()
	template := NewTemplate(l, Cut(l, j.anchors, "backward passes"))
	if template == nil {
		t.Fatal("no template")
	}
	for _, r := range template.Requests {
		if r.Path == 3 || r.Path == 6 || r.Path == 7 {
			t.Errorf("%+v is hot", r)
		}
	}
	if len(template.Requests) != 3 || template.Share() >= 0.9 {
		t.Errorf("%d requests, share %.2f", len(template.Requests), template.Share())
	}
}

// TestReplanFollowsVariableLengths: a longer sequence is served elsewhere once,
// and planned for from then on.
func TestReplanFollowsVariableLengths(t *testing.T) {
	ctx := context.Background()
	j := &job{}
	j.train(20, constant, nil)
	l := j.lives()
	steady, err := Replan(ctx, l, Cut(l, j.anchors, "backward passes"), 64)
	if err != nil || steady.Deviations != 0 || steady.Replans != 0 || steady.Served == 0 {
		t.Errorf("equal steps: %+v, %v", steady, err)
	}
	j = &job{}
	lengths := []int64{2000, 2000, 2500, 2100, 3000, 2400, 2900, 2000, 1000, 2999, 2000, 2000, 2000, 2000}
	j.train(len(lengths), func(k int) int64 { return lengths[k] }, nil)
	l = j.lives()
	varying, err := Replan(ctx, l, Cut(l, j.anchors, "backward passes"), 64)
	if err != nil {
		t.Fatal(err)
	}
	// Only 2,500 and 3,000 are longer than all before.
	if varying.Deviations != 2 || varying.Replans != 2 || varying.DeviatingBytes != 5500 || varying.ReplansLate != 0 {
		t.Errorf("varying lengths: %+v", varying)
	}
}

// TestNoStepsNoTemplate: too few steps, and nothing that repeats.
func TestNoStepsNoTemplate(t *testing.T) {
	j := &job{}
	for k := range int64(50) {
		j.alloc(k, k+1)
	}
	l := j.lives()
	if s := Cut(l, nil, ""); s.Whole() != 0 || NewTemplate(l, s) != nil {
		t.Errorf("steps of what never repeats: %+v", s)
	}
}
