package solve

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

func TestZZ(t *testing.T) {
	for seed := uint64(0); seed < 3; seed++ {
		for _, n := range []int{60, 100, 150, 250, 400} {
			for _, drop := range []int{0, 10} {
				r := rand.New(rand.NewPCG(seed, uint64(n)))
				bs, _ := cutRectangle(r, n, 1<<20, 1<<16)
				bs = bs[:len(bs)-drop*n/100]
				st := time.Now()
				ctx, c := context.WithTimeout(context.Background(), 6*time.Second)
				p, err := Solve(ctx, Problem{Blocks: bs, Capacity: 1 << 20})
				c()
				if err != nil {
					t.Fatal(err)
				}
				t.Log(seed, n, drop, float64(p.Attempts[0].Peak)/(1<<20), float64(p.Peak)/(1<<20), p.Solver, p.Optimal, time.Since(st))
			}
		}
	}
}
