package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/profile"
	"github.com/ebpfprof/ebpfprof/internal/model/stacks"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// flame is /api/flame: who called whom, by samples, from the threads' start down or from the innermost function up.
type flame struct {
	TotalNS   int64        `json:"total_ns"`
	Samples   int64        `json:"samples"`
	Root      *flameNode   `json:"root"`
	Path      []string     `json:"path"`      // from the whole to Root
	HiddenNS  int64        `json:"hidden_ns"` // in functions that are too narrow to be drawn: ask for the one around them
	Functions []flameTotal `json:"functions"`
	Command   string       `json:"command"`
}

type flameNode struct {
	Name     string       `json:"n"`
	Kind     string       `json:"k"`
	SelfNS   int64        `json:"s"`
	TotalNS  int64        `json:"t"`
	Children []*flameNode `json:"c,omitempty"`
}

type flameTotal struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	SelfNS  int64  `json:"self_ns"`
	TotalNS int64  `json:"total_ns"`
}

const (
	mostFlames    = 6000 // functions in an answer
	narrowest     = 1500 // a function with less than this part of all time is not drawn
	deepest       = 400
	mostFunctions = 100
)

// flames remembers the profile that was asked for last: zooming asks for the same again.
type flames struct {
	mu      sync.Mutex
	key     string
	tree    *profile.Node
	profile profile.Profile
}

func (s *edition) flame(r *http.Request) (any, error) {
	q := r.URL.Query()
	o, err := part(q)
	if err != nil {
		return nil, err
	}
	if o.Step != nil {
		return nil, badRequest("a flame graph is of a time range: give from and to")
	}
	if _, err := s.pyramid(r.Context()); err != nil {
		return nil, err
	}
	chosen := dataset.Part{Rank: o.Rank}
	if o.FromMS != nil {
		chosen.From = s.lanes.firstNS + int64(*o.FromMS*1e6)
	}
	if o.ToMS != nil {
		chosen.Until = max(s.lanes.firstNS+int64(*o.ToMS*1e6), 1)
	}
	waiting, up := q.Get("state") == "off_cpu", q.Get("order") == "up"
	f := &s.flames
	f.mu.Lock()
	defer f.mu.Unlock()
	if key := fmt.Sprint(partKey(o), waiting, up); f.key != key {
		if err := s.loadFlames(r.Context(), f, chosen, waiting, up); err != nil {
			return nil, err
		}
		f.key = key
	}
	return s.drawFlame(f, q, waiting)
}

// loadFlames adds up the samples of a part.
func (s *edition) loadFlames(ctx context.Context, f *flames, chosen dataset.Part, waiting, up bool) error {
	f.key = ""
	return s.query(ctx, func(ctx context.Context, db *dataset.DB) (err error) {
		if chosen != (dataset.Part{}) {
			if err := db.Restrict(ctx, chosen); err != nil {
				return err
			}
			// Whoever uses this dataset next wants all of it, even if this request was cancelled.
			defer func() { err = errors.Join(err, db.Restrict(s.life, dataset.Part{})) }()
		}
		f.profile, err = stacks.Load(ctx, db, stacks.Filter{OffCPU: waiting})
		if errors.Is(err, stacks.ErrNoSamples) {
			return notFound("%w", err)
		}
		if err != nil {
			return err
		}
		drawn := f.profile
		if up {
			drawn = slices.Clone(drawn)
			for i := range drawn {
				drawn[i].Frames = slices.Clone(drawn[i].Frames)
				slices.Reverse(drawn[i].Frames)
			}
		}
		f.tree = drawn.Tree()
		return nil
	})
}

func (s *edition) drawFlame(f *flames, q url.Values, waiting bool) (any, error) {
	d := flame{TotalNS: f.profile.WeightNS(), Samples: f.profile.Samples(), Path: []string{}, Functions: []flameTotal{}}
	at := f.tree
	if path := q.Get("below"); path != "" {
		for label := range strings.SplitSeq(path, "\n") {
			i := slices.IndexFunc(at.Children, func(n *profile.Node) bool { return printable.Short(n.Label) == label })
			if i < 0 {
				return nil, notFound("no function of that path: %s", printable.Short(label))
			}
			at = at.Children[i]
			d.Path = append(d.Path, label)
		}
	}
	left := mostFlames
	d.Root = cut(at, at.TotalNS/narrowest, &left, &d.HiddenNS, deepest)
	for i, fn := range f.profile.Functions() {
		if i == mostFunctions {
			break
		}
		d.Functions = append(d.Functions, flameTotal{printable.Short(fn.Label), string(fn.Kind), fn.SelfNS, fn.TotalNS})
	}
	d.Command = "ebpfprof stacks"
	if waiting {
		d.Command += " --off-cpu"
	}
	return d, nil
}

// cut copies what is wide enough to be drawn, and adds up what is not.
func cut(n *profile.Node, least int64, left *int, hidden *int64, depth int) *flameNode {
	out := &flameNode{Name: printable.Short(n.Label), Kind: string(n.Kind), SelfNS: n.SelfNS, TotalNS: n.TotalNS}
	*left--
	for _, c := range n.Children {
		if c.TotalNS < least || *left <= 0 || depth == 0 {
			*hidden += c.TotalNS
			continue
		}
		out.Children = append(out.Children, cut(c, least, left, hidden, depth-1))
	}
	return out
}
