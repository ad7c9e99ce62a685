package graph

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// random makes a graph that was possible: on a few lanes nodes follow one
// another, some wait for what ended meanwhile, some begin together in groups.
func random(seed uint64) *Builder {
	r := rand.New(rand.NewPCG(seed, 1))
	b := new(Builder)
	const lanes = 4
	var now [lanes]float64
	last := [lanes]int{-1, -1, -1, -1}
	for range 200 {
		lane := r.IntN(lanes)
		start := now[lane] + float64(r.IntN(3))
		end := start + float64(r.IntN(1000))
		var waited []int
		for other, n := range last {
			if other != lane && n >= 0 && r.IntN(4) == 0 && b.nodes[n].End > start {
				waited = append(waited, n)
				end = max(end, b.nodes[n].End+float64(r.IntN(5)))
			}
		}
		v := b.Add(Node{start, end, lane})
		if last[lane] >= 0 {
			b.After(v, last[lane])
		}
		for _, n := range waited {
			b.Waits(v, n)
		}
		for other, n := range last {
			if other != lane && n >= 0 && b.nodes[n].End <= start {
				b.After(v, n)
			}
		}
		now[lane], last[lane] = end, v
		if r.IntN(20) == 0 { // all lanes meet
			meet := slices.Max(now[:])
			var members []int
			for l := range lanes {
				m := b.Add(Node{now[l], meet + float64(10+r.IntN(10)), l})
				if last[l] >= 0 {
					b.After(m, last[l])
				}
				members = append(members, m)
			}
			b.Group(members...)
			for l, m := range members {
				now[l], last[l] = b.nodes[m].End, m
			}
		}
	}
	return b
}

func TestReplayWithoutChangeGivesTheMeasuredTimesExactly(t *testing.T) {
	for seed := range uint64(50) {
		g, err := random(seed).Graph()
		if err != nil {
			t.Fatal(err)
		}
		run := g.Replay(g.Measured())
		for n := range g.Len() {
			if node := g.Node(n); run.Start[n] != node.Start || run.End[n] != node.End {
				t.Fatalf("seed %d: node %d is %v–%v, measured %v–%v", seed, n, run.Start[n], run.End[n], node.Start, node.End)
			}
		}
		if g.Dropped() != 0 {
			t.Errorf("seed %d: %d edges dropped from a graph that was possible", seed, g.Dropped())
		}
	}
}

func TestCriticalPathIsOneStretchFromTheFirstStartToTheLastEnd(t *testing.T) {
	for seed := range uint64(50) {
		g, err := random(seed).Graph()
		if err != nil {
			t.Fatal(err)
		}
		run := g.Replay(g.Measured())
		path := g.CriticalPath(run)
		if end := path[len(path)-1].To; end != run.Last() {
			t.Fatalf("seed %d: path ends at %v, run at %v", seed, end, run.Last())
		}
		for i := 1; i < len(path); i++ {
			if path[i].From != path[i-1].To {
				t.Fatalf("seed %d: hole between %+v and %+v", seed, path[i-1], path[i])
			}
		}
	}
}

func TestOnlyWhatIsOnTheCriticalPathBringsAnything(t *testing.T) {
	for seed := range uint64(20) {
		g, err := random(seed).Graph()
		if err != nil {
			t.Fatal(err)
		}
		measured := g.Measured()
		run := g.Replay(measured)
		on := map[int]bool{}
		for _, s := range g.CriticalPath(run) {
			on[s.Node] = true
		}
		for n := range g.Len() {
			changed := measured.Clone()
			changed.Own[n] = min(changed.Own[n], 0)
			last := g.Replay(changed).Last()
			switch {
			case last > run.Last():
				t.Fatalf("seed %d: without node %d it takes %v instead of %v", seed, n, last, run.Last())
			case last < run.Last() && !on[n]:
				t.Fatalf("seed %d: node %d is off the path and brings %v", seed, n, run.Last()-last)
			}
		}
	}
}

// A launch, its kernel, a call that waits for it: with a faster kernel the call
// returns earlier, but never before it was made.
func TestWaitEndsWithWhatItWaitedForAndNotBeforeItBegan(t *testing.T) {
	var b Builder
	launch := b.Add(Node{0, 10, 0})
	kernel := b.Add(Node{12, 100, 1})
	host := b.Add(Node{10, 40, 0})
	wait := b.Add(Node{40, 103, 0})
	b.After(kernel, launch)
	b.After(host, launch)
	b.After(wait, host)
	b.Waits(wait, kernel)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	times := g.Measured()
	if times.Delay[kernel] != 2 || times.Own[wait] != 3 {
		t.Errorf("delay of the kernel %v, own time of the wait %v", times.Delay[kernel], times.Own[wait])
	}
	for kernelTime, want := range map[float64]float64{88: 103, 50: 65, 0: 43} {
		changed := times.Clone()
		changed.Own[kernel] = kernelTime
		if end := g.Replay(changed).End[wait]; end != want {
			t.Errorf("a kernel of %v: the wait ends at %v, want %v", kernelTime, end, want)
		}
	}
	free := times.Clone()
	free.Free = map[int]bool{wait: true}
	if end := g.Replay(free).End[wait]; end != 43 {
		t.Errorf("a wait that is gone ends at %v, want 43", end)
	}
	path := g.CriticalPath(g.Replay(times))
	want := []Segment{{launch, 0, 10}, {kernel, 10, 100}, {wait, 100, 103}}
	if !slices.Equal(path, want) {
		t.Errorf("path %v, want %v", path, want)
	}
}

func TestGroupGetsOnWithItsLastMember(t *testing.T) {
	var b Builder
	early, late := b.Add(Node{0, 10, 0}), b.Add(Node{0, 70, 1})
	first, second := b.Add(Node{10, 75, 0}), b.Add(Node{70, 74, 1})
	b.After(first, early)
	b.After(second, late)
	b.Group(first, second)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	times := g.Measured()
	if times.Own[first] != 5 || times.Own[second] != 4 {
		t.Errorf("transfers %v and %v", times.Own[first], times.Own[second])
	}
	times.Own[late] = 10
	if run := g.Replay(times); run.End[first] != 15 || run.End[second] != 14 {
		t.Errorf("ends %v", run.End)
	}
	want := []Segment{{late, 0, 70}, {first, 70, 75}}
	if path := g.CriticalPath(g.Replay(g.Measured())); !slices.Equal(path, want) {
		t.Errorf("path %v, want %v", path, want)
	}
}

func TestEdgeAgainstTheMeasuredTimesIsDroppedAndCounted(t *testing.T) {
	for keep, dropped := range map[bool]int{false: 2, true: 0} {
		b := Builder{KeepBackward: keep}
		u, v := b.Add(Node{0, 10, 0}), b.Add(Node{5, 8, 1})
		b.After(v, u)
		w := b.Add(Node{5, 9, 2})
		b.Waits(w, u)
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		if g.Dropped() != dropped {
			t.Errorf("keep %t: %d dropped", keep, g.Dropped())
		}
		if run := g.Replay(g.Measured()); run.End[v] != 8 || run.End[w] != 9 {
			t.Errorf("keep %t: ends %v", keep, run.End)
		}
	}
}

func TestAmongEqualsThePathStaysInItsLane(t *testing.T) {
	var b Builder
	other, own := b.Add(Node{0, 10, 1}), b.Add(Node{0, 10, 0})
	last := b.Add(Node{10, 20, 0})
	b.After(last, other)
	b.After(last, own)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if path := g.CriticalPath(g.Replay(g.Measured())); path[0].Node != own {
		t.Errorf("path %v", path)
	}
}

func TestCycleIsAnError(t *testing.T) {
	b := Builder{KeepBackward: true}
	u, v := b.Add(Node{}), b.Add(Node{})
	b.After(u, v)
	b.After(v, u)
	if _, err := b.Graph(); !errors.Is(err, ErrCycle) {
		t.Errorf("got %v", err)
	}
	if g, err := new(Builder).Graph(); err != nil || g.Replay(g.Measured()).Last() != 0 || g.CriticalPath(Run{}) != nil {
		t.Errorf("an empty graph: %v", err)
	}
}
