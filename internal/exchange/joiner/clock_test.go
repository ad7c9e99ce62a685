package joiner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// ring is a run of two hosts: what each saw of n collectives that begin every gap ns, when their
// clocks are apart by so much at the beginning and drift.
func ring(r *rand.Rand, n int, gap, ahead int64, driftOf float64) (a, b map[meeting]moment) {
	a, b = map[meeting]moment{}, map[meeting]moment{}
	const start = int64(1_800_000_000_000_000_000)
	for i := range int64(n) {
		at := start + i*gap
		came := [2]int64{at + r.Int64N(3_000_000), at + r.Int64N(3_000_000)} // ranks do not come at one time
		done := max(came[0], came[1]) + 200_000 + r.Int64N(100_000)
		left := [2]int64{done + r.Int64N(80_000), done + 40_000 + r.Int64N(80_000)} // one is always read a bit later
		other := func(ns int64) int64 { return ns + ahead + int64(driftOf*float64(ns-start)) }
		a[meeting{5, i}] = moment{came[0], left[0], left[0]}
		b[meeting{5, i}] = moment{other(came[1]), other(left[1]), other(left[1])}
	}
	return a, b
}

func TestAClockIsFoundWithinTheErrorThatIsStated(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, ahead := range []int64{0, 3_217_000_000, -86_400_000_000_000, 40_000} {
		for _, n := range []int{leastMeetings, 20, 400} {
			for _, drift := range []float64{0, 2e-5} {
				gap := int64(100_000_000)
				if drift > 0 && n < 400 {
					continue // too few to tell it
				}
				a, b := ring(r, n, gap, ahead, drift)
				c, ok, contradicts := compare(a, b)
				if !ok || contradicts {
					t.Fatalf("%d collectives: ok %t, contradicts %t", n, ok, contradicts)
				}
				for _, m := range []int64{0, int64(n) / 2, int64(n) - 1} {
					at := a[meeting{5, m}].left
					truth := at + ahead + int64(drift*float64(m*gap))
					if wrong := c.onReference(truth) - at; wrong < -c.Error-2000 || wrong > c.Error+2000 {
						t.Errorf("%d collectives, ahead %d, drift %g: collective %d is put %d ns wrong, and the stated error is %d", n, ahead, drift, m,
							wrong, c.Error)
					}
				}
				if c.Error > 2_000_000 || c.Collectives != n {
					t.Errorf("%d collectives: error %d ns, of %d", n, c.Error, c.Collectives)
				}
				if found := math.Abs(c.Drift-drift) < 2e-6; !found {
					t.Errorf("%d collectives: drift %g, want %g", n, c.Drift, drift)
				}
			}
		}
	}
}

func TestFewCollectivesTellNoClock(t *testing.T) {
	a, b := ring(rand.New(rand.NewPCG(1, 2)), leastMeetings-1, 1e8, 0, 0)
	if _, ok, _ := compare(a, b); ok {
		t.Errorf("%d collectives were enough", len(a))
	}
}

// Two runs of one job have groups and numbers in common, and nothing else.
func TestCollectivesOfAnotherRunContradict(t *testing.T) {
	a, _ := ring(rand.New(rand.NewPCG(1, 2)), 50, 100_000_000, 0, 0)
	_, b := ring(rand.New(rand.NewPCG(3, 4)), 50, 97_000_000, 3_600_000_000_000, 0)
	if _, ok, contradicts := compare(a, b); !ok || !contradicts {
		t.Errorf("ok %t, contradicts %t", ok, contradicts)
	}
}

func TestErrorsOfClocksAddUp(t *testing.T) {
	known := Clock{Reference: "r", Ahead: 1000, At: 5000, Drift: 0.5, Error: 10}
	c := Clock{Ahead: 300, At: 6000, Error: 5}.after(known)
	// At 6000 of its own, 5700 by the known one's: that is 350 more than at 5000.
	if want := (Clock{Reference: "r", Ahead: 1650, At: 6000, Drift: 0.5, Error: 15}); fmt.Sprint(c) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", c, want)
	}
}
