package solve

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

func TestZZ(t *testing.T) {
	for seed := uint64(0); seed < 3; seed++ {
		for _, n := range []int{150, 250, 400} {
			for _, cap := range []int64{64, 200, 1024} {
				for _, drop := range []int{0, 3, 8} {
					r := rand.New(rand.NewPCG(seed, uint64(n)))
					bs, _ := cutRectangle(r, n, cap, 150)
					bs = bs[:len(bs)-drop*n/100]
					st := time.Now()
					ctx, c := context.WithTimeout(context.Background(), 8*time.Second)
					p, err := Solve(ctx, Problem{Blocks: bs, Capacity: cap})
					c()
					if err != nil {
						t.Fatal(err)
					}
					if d := time.Since(st); d > 500*time.Millisecond {
						t.Log(seed, n, cap, drop, float64(p.Attempts[0].Peak)/float64(cap), float64(p.Peak)/float64(cap), float64(p.LowerBound)/float64(cap), p.Solver, p.Optimal, d)
					}
				}
			}
		}
	}
}
