package timeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// PathRank is a rank's share of a path that goes through several.
type PathRank struct {
	Rank      int     `json:"rank"`
	ExposedMS float64 `json:"exposed_ms"`
	WaitsMS   float64 `json:"waits_ms"` // in collectives, for ranks that come to them later
	Last      int     `json:"last"`     // collectives that it was the last to come to
}

// PathOverRanks is the critical path of a step of all ranks: where one waits in a collective,
// it goes on through the rank that came to it last. Nil where no other rank was recorded, or
// none shares a collective with this one.
func PathOverRanks(ctx context.Context, db *dataset.DB, threads []Thread, t Thread, s Step) (*CriticalPath, error) {
	if len(others(threads, t)) == 0 {
		return nil, nil
	}
	g, err := graphOf(ctx, db, t, s)
	if err != nil {
		return nil, err
	}
	var p *CriticalPath
	for end := range g {
		if g[end] == nil {
			continue // points in time
		}
		all, err := OverRanks(ctx, db, threads, t, []Step{s}, []*StepGraph{g[end]})
		if err != nil || all[0] == nil {
			return nil, err
		}
		if p == nil {
			p = all[0].path(t)
		} else {
			p.between(all[0].path(t))
		}
	}
	return p.of(s), nil
}

func (r *RanksGraph) path(t Thread) *CriticalPath {
	run := r.Graph.Replay(r.Times)
	g := r.Parts[0]
	p := &CriticalPath{PID: t.PID, Rank: t.Rank, Kind: g.Step.Kind, Number: g.Step.Number, BeginNS: r.Begin,
		PeriodMS: ms(float64(g.Step.Period)), Whole: g.Step.Whole}
	p.Method = fmt.Sprintf("%d ranks, joined in %s; %s", len(r.Parts), counted(r.Met, "collective"), g.method())
	if r.Apart > 0 {
		p.Method += fmt.Sprintf("; %s at which ranks were not at one time are not joined", counted(r.Apart, "collective"))
	}
	p.fill(r.Graph, run, func(node int) (*StepGraph, int, *int) {
		i, n := r.at(node)
		return r.Parts[i], n, r.Ranks[i]
	})
	shares := make([]PathRank, len(r.Parts))
	for i, rank := range r.Ranks {
		shares[i].Rank = *rank
		for _, s := range p.Segments {
			if s.Rank == rank {
				shares[i].ExposedMS += s.MS
			}
		}
	}
	for _, members := range r.groups {
		latest := members[0]
		for _, n := range members {
			if r.Graph.Node(n).Start > r.Graph.Node(latest).Start {
				latest = n
			}
		}
		for _, n := range members {
			i, _ := r.at(n)
			shares[i].WaitsMS += ms(r.Graph.Node(latest).Start - r.Graph.Node(n).Start)
		}
		i, _ := r.at(latest)
		shares[i].Last++
	}
	slices.SortStableFunc(shares, func(a, b PathRank) int { return cmp.Compare(b.ExposedMS, a.ExposedMS) })
	p.Ranks = shares
	return p
}
