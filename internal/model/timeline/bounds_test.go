package timeline

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// atBothEnds is a step's graph of spans that a test lists, with the least and the most time of
// the work that only bounds are known of.
func atBothEnds(t *testing.T, until int64, spans ...Span) (least, most *StepGraph) {
	t.Helper()
	least = made(t, until, spans...)
	most, err := NewStepGraphAt(Thread{PID: 1, TID: 1}, least.Step, spans, Most)
	if err != nil {
		t.Fatal(err)
	}
	return least, most
}

func launch(begin, end, stream, least, most int64) Span {
	return Span{Begin: begin, End: end, Layer: "runtime", Category: "launch", Name: "kernel", Stream: stream, Bounds: &Bounds{Least: least,
		Most: most}}
}

func wait(begin, end, stream int64) Span {
	return Span{Begin: begin, End: end, Layer: "runtime", Category: "sync", Name: "cuStreamSynchronize", Stream: stream}
}

// bounding is what a host sees of a job that hands work to two streams and waits now and then.
func bounding(r *rand.Rand) (spans []Span, until int64) {
	now := int64(0)
	var open [3][]int
	for range 60 {
		now += r.Int64N(20)
		stream := 1 + r.Int64N(2)
		switch r.IntN(4) {
		case 0:
			s := wait(now, now+1+r.Int64N(300), stream)
			for _, i := range open[stream] {
				spans[i].Bounds = &Bounds{Most: s.End - spans[i].Begin}
			}
			if n := len(open[stream]); n == 1 && r.IntN(2) == 0 {
				spans[open[stream][0]].Bounds.Least = r.Int64N(s.End - s.Begin)
			}
			open[stream], spans, now = nil, append(spans, s), s.End
		default:
			s := launch(now, now+1+r.Int64N(10), stream, 0, 0)
			s.Bounds = nil // until a wait has seen its end
			open[stream], spans, now = append(open[stream], len(spans)), append(spans, s), s.End
		}
	}
	return spans, now + 5
}

func TestWithBoundsAReplayWithoutChangeGivesTheMeasuredTimeAtBothEnds(t *testing.T) {
	worked := 0
	for seed := range uint64(200) {
		spans, until := bounding(rand.New(rand.NewPCG(seed, 9)))
		least, most := atBothEnds(t, until, spans...)
		for end, g := range []*StepGraph{least, most} {
			run := g.Graph.Replay(g.Times)
			if run.Last() != float64(until) || g.Through(run) != float64(until) || g.Graph.Dropped() != 0 {
				t.Fatalf("seed %d, end %d: replayed %v of %d, %d edges dropped", seed, end, run.Last(), until, g.Graph.Dropped())
			}
			for n := range g.Graph.Len() {
				if node := g.Graph.Node(n); run.Start[n] != node.Start || run.End[n] != node.End {
					t.Fatalf("seed %d, end %d: node %d is %v to %v, measured %+v", seed, end, n, run.Start[n], run.End[n], node)
				}
			}
			p := g.path(Thread{})
			if sum := p.HostMS + p.DeviceMS + p.BetweenMS; math.Abs(sum-p.PathMS) > 1e-9 {
				t.Fatalf("seed %d, end %d: parts add up to %v of %v", seed, end, sum, p.PathMS)
			}
			worked += within(t, seed, End(end), g)
		}
		if a, b := deviceOf(least), deviceOf(most); a > b {
			t.Fatalf("seed %d: at the least %d on devices, at the most %d", seed, a, b)
		}
	}
	if worked < 1000 {
		t.Errorf("%d pieces of work: the test looked at next to nothing", worked)
	}
}

// within holds each piece of work against its bounds, and against those before it on its stream.
func within(t *testing.T, seed uint64, end End, g *StepGraph) (n int) {
	t.Helper()
	before := map[int64]int64{}
	for _, s := range g.Spans {
		if !s.OnDevice() {
			continue
		}
		n++
		call := g.Spans[slices.IndexFunc(g.Spans, func(c Span) bool { return c.ID == s.Launch })]
		took := s.End - s.Begin
		if s.Begin < call.Begin || s.End > call.Begin+call.Bounds.Most || took > call.Bounds.Most || end == Least && took != call.Bounds.Least {
			t.Fatalf("seed %d, end %d: %+v of %+v, bounds %+v", seed, end, s, call, *call.Bounds)
		}
		if s.Begin < before[s.Stream] {
			t.Fatalf("seed %d, end %d: %+v begins before what was before it on its stream had ended at %d", seed, end, s, before[s.Stream])
		}
		before[s.Stream] = s.End
	}
	return n
}

func deviceOf(g *StepGraph) (ns int64) {
	for _, s := range g.Spans {
		if s.OnDevice() {
			ns += s.End - s.Begin
		}
	}
	return ns
}

// A kernel that a wait of 80 was for alone: the device worked for 70 of them at least.
func TestAWaitIsTheHostsOrTheDevices(t *testing.T) {
	least, most := atBothEnds(t, 120, launch(0, 10, 7, 70, 100), wait(20, 100, 7))
	for _, c := range []struct {
		end                        string
		g                          *StepGraph
		host, device, launch, less float64
	}{
		// The host goes on until it waits; the kernel begins with the wait and takes 70 of it.
		{"least", least, 20, 70, 0, 50},
		// The kernel runs from its launch on until the wait ends: without it the wait is over when it begins.
		{"most", most, 0, 100, 0, 40},
	} {
		p := c.g.path(Thread{})
		if math.Abs(p.HostMS*1e6-c.host) > 1e-9 || math.Abs(p.DeviceMS*1e6-c.device) > 1e-9 ||
			math.Abs(p.BoundBy.KernelLaunch*1e6-c.launch) > 1e-9 {
			t.Errorf("%s: host %v, device %v, launch latency %v ns", c.end, p.HostMS*1e6, p.DeviceMS*1e6, p.BoundBy.KernelLaunch*1e6)
		}
		times := c.g.Times.Clone()
		for n, s := range c.g.Segments {
			if s.Device {
				times.Own[n] = 0
			}
		}
		if got := c.g.Graph.Replay(times).Last(); got != c.less {
			t.Errorf("%s: without the kernel %v, want %v", c.end, got, c.less)
		}
	}
}

// Three kernels that one wait has seen the end of share what they can have taken together.
func TestWorkSeenToBeDoneTogetherSharesItsTime(t *testing.T) {
	_, most := atBothEnds(t, 200, launch(0, 1, 7, 0, 150), launch(2, 3, 7, 0, 148), launch(100, 101, 7, 0, 50), wait(110, 150, 7))
	var got []int64
	for _, s := range most.Spans {
		if s.OnDevice() {
			got = append(got, s.Begin, s.End)
		}
	}
	if want := []int64{0, 50, 50, 100, 100, 150}; !slices.Equal(got, want) {
		t.Errorf("they run %v, want %v", got, want)
	}
}

// A wait for three kernels tells for how long the device was at work while it lasted.
func TestAWaitForSeveralPiecesTellsOfThemTogether(t *testing.T) {
	w := wait(110, 150, 7)
	w.Busy = 30
	least, most := atBothEnds(t, 200, launch(0, 1, 7, 0, 150), launch(2, 3, 7, 0, 148), launch(100, 101, 7, 0, 50), w)
	p := least.path(Thread{})
	if math.Abs(p.DeviceMS*1e6-30) > 1e-9 || p.BoundBy.KernelLaunch != 0 || least.last() != 200 || most.last() != 200 {
		t.Errorf("device %v ns, launch latency %v ns, replayed %v and %v", p.DeviceMS*1e6, p.BoundBy.KernelLaunch*1e6, least.last(), most.last())
	}
	var took []int64
	for _, s := range least.Spans {
		if s.OnDevice() {
			took = append(took, s.Begin, s.End)
		}
	}
	if want := []int64{110, 120, 120, 130, 130, 140}; !slices.Equal(took, want) {
		t.Errorf("they run %v, want %v", took, want)
	}
}

// What the device measured itself took that long at both ends: from its launch on, or until the wait ended.
func TestMeasuredWorkMovesBetweenItsLaunchAndItsWait(t *testing.T) {
	work := launch(0, 10, 7, 30, 30)
	work.Bounds.Ended = 100
	least, most := atBothEnds(t, 120, work, wait(20, 100, 7))
	if a, b := least.path(Thread{}), most.path(Thread{}); math.Abs(a.DeviceMS*1e6-30) > 1e-9 || math.Abs(b.BoundBy.Compute*1e6-30) > 1e-9 ||
		math.Abs(b.BoundBy.KernelLaunch*1e6-70) > 1e-9 {
		t.Errorf("at the least %v ns, at the most %+v", a.DeviceMS*1e6, b.BoundBy)
	}
}

// bounds gives a call of the runtime the bounds that a recording of the host has.
func boundsOf(j *scripted.Job, own, least, most int64) {
	call := j.Call("runtime", "launch", "gemm", own)
	j.Bound(call, least, most)
}

// TestPathOfALiveRecordingIsARange, from the columns of a dataset on; what was handed over before the step is in it.
func TestPathOfALiveRecordingIsARange(t *testing.T) {
	const us = 1_000
	j := scripted.New()
	boundsOf(j, 10*us, 0, 60*us) // from before the step, 50 into it
	begin := j.Now
	boundsOf(j, 10*us, 0, 100*us)
	j.Wait(20 * us)
	j.Call("runtime", "sync", "cuStreamSynchronize", 70*us)
	j.Wait(10 * us)
	db, err := dataset.Open(scripted.Write(t, j))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	step := Step{Step: steps.Step{Begin: begin, End: j.Now, Period: j.Now - begin, Kind: steps.Train}, Whole: true}
	p, err := Path(context.Background(), db, Thread{PID: int(j.PID), TID: int(j.TID)}, step)
	if err != nil {
		t.Fatal(err)
	}
	if p.PathBounds == nil || p.PathLoMS != p.PathHiMS || p.PathLoMS != .11 {
		t.Fatalf("%+v", p.PathBounds)
	}
	if p.DeviceLoMS != 0 || p.DeviceHiMS != .1 || p.HostHiMS != .08 || p.HostLoMS != 0 {
		t.Errorf("%+v", *p.PathBounds)
	}
	var text strings.Builder
	if err := p.WriteText(&text); err != nil || !strings.Contains(text.String(), "device 0.0 µs to 100.0 µs") ||
		!strings.Contains(text.String(), "ranges are between both ends") {
		t.Errorf("%v\n%s", err, text.String())
	}
	for _, part := range p.Parts {
		if part.PartBounds == nil || part.Where == "device" && part.Name == "gemm" && (part.ExposedLoMS != 0 ||
			math.Abs(part.ExposedHiMS-.1) > 1e-9) {
			t.Errorf("%+v, %+v", part, part.PartBounds)
		}
	}
}
