package history

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

// Kernel is how much of a step a worker's device took for one kind of work, on average over
// the recordings that have launches: at the least and at the most, in milliseconds.
type Kernel struct {
	Class       string  `json:"class"`
	Name        string  `json:"kernel"`
	ThenLoMS    float64 `json:"then_lo_ms"`
	ThenHiMS    float64 `json:"then_hi_ms"`
	NowLoMS     float64 `json:"now_lo_ms"`
	NowHiMS     float64 `json:"now_hi_ms"`
	Significant bool    `json:"significant"`
}

// growth is what is certain of the difference: how far the two pairs of bounds are apart,
// negative where it is less now; 0 where they meet.
func (k Kernel) growth() float64 {
	switch {
	case k.NowLoMS > k.ThenHiMS:
		return k.NowLoMS - k.ThenHiMS
	case k.NowHiMS < k.ThenLoMS:
		return k.NowHiMS - k.ThenLoMS
	}
	return 0
}

// onDevice are the kernels of one side: of each minute that has launches the mean bounds, in
// ms of a step.
type onDevice struct {
	kernels map[function]*bounds
	minutes int
}

type bounds struct{ least, most []float64 }

// readKernels reads how much of a step devices had each kernel in each minute of which there
// is a recording with launches: its share of those recordings, times the minute's mean step.
func (r *Result) readKernels(ctx context.Context, db *dataset.DB, from, to int64) (*onDevice, error) {
	s := &onDevice{kernels: map[function]*bounds{}}
	if len(db.Files("pattern")) == 0 {
		return s, nil
	}
	step := map[int64]float64{}
	for _, m := range r.Minutes {
		step[m.BeginNS] = m.MeanMS
	}
	rows, err := db.Query(ctx, minutesOf(pattern.Device)+`
		SELECT minute, class, name, function_id, sum(beta_lo) / max(n), sum(beta_hi) / max(n)
		FROM p JOIN windows USING (minute) GROUP BY minute, class, name, function_id ORDER BY minute, function_id`, r.Job, r.meaning, to, from)
	if err != nil {
		return nil, fmt.Errorf("reading patterns of devices: %w", err)
	}
	defer rows.Close()
	minutes := map[int64]bool{}
	for rows.Next() {
		var f function
		var at int64
		var least, most float64
		if err := rows.Scan(&at, &f.class, &f.name, &f.id, &least, &most); err != nil {
			return nil, fmt.Errorf("reading patterns of devices: %w", err)
		}
		if step[at] == 0 {
			continue // no step of it was seen
		}
		b := s.kernels[f]
		if b == nil {
			b = &bounds{}
			s.kernels[f] = b
		}
		minutes[at] = true
		b.least, b.most = append(b.least, least*step[at]), append(b.most, most*step[at])
	}
	s.minutes = len(minutes)
	return s, rows.Err()
}

// kernelsOfBoth reads those of both times. Recordings with launches are few: where there is
// none in the time that is compared with, all before now are.
func (r *Result) kernelsOfBoth(ctx context.Context, db *dataset.DB) error {
	now, err := r.readKernels(ctx, db, r.Now.BeginNS, r.Now.EndNS)
	if err != nil {
		return err
	}
	then, err := r.readKernels(ctx, db, r.Then.BeginNS, r.Then.EndNS)
	if err != nil {
		return err
	}
	if then.minutes == 0 && now.minutes > 0 && len(r.Minutes) > 0 {
		if then, err = r.readKernels(ctx, db, r.Minutes[0].BeginNS, r.Now.BeginNS); err != nil {
			return err
		}
		if then.minutes > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("there is no recording with launches of the time that is compared with: kernels are compared "+
				"with those of all %d minutes before now of which there is one", then.minutes))
		}
	}
	r.kernels(then, now)
	return nil
}

// of are a kernel's bounds in all minutes with launches: nothing where it was not launched.
func (s *onDevice) of(f function) bounds {
	b := s.kernels[f]
	if b == nil {
		b = &bounds{}
	}
	none := make([]float64, max(s.minutes-len(b.least), 0))
	return bounds{append(slices.Clone(b.least), none...), append(slices.Clone(b.most), none...)}
}

func (r *Result) kernels(then, now *onDevice) {
	seen := map[function]bool{}
	for _, s := range []*onDevice{then, now} {
		for f := range s.kernels {
			seen[f] = true
		}
	}
	for f := range seen {
		before, after := then.of(f), now.of(f)
		k := Kernel{Class: f.class, Name: f.name, ThenLoMS: steps.Mean(before.least), ThenHiMS: steps.Mean(before.most),
			NowLoMS: steps.Mean(after.least), NowHiMS: steps.Mean(after.most)}
		switch {
		case k.growth() > 0:
			k.Significant = r.grown(before.most, after.least)
		case k.growth() < 0:
			k.Significant = r.grown(before.least, after.most)
		}
		r.Kernels = append(r.Kernels, k)
	}
	if (then.minutes == 0) != (now.minutes == 0) {
		r.Notes = append(r.Notes, "one side has no recording with launches: which kernel changed is not told")
		r.Kernels = r.Kernels[:0]
	} else if len(seen) > 0 && min(then.minutes, now.minutes) < 2 {
		r.Notes = append(r.Notes, "a side has launches of a single minute: how far kernels differ at random is not known")
	}
	slices.SortFunc(r.Kernels, func(a, b Kernel) int {
		return cmp.Or(cmp.Compare(math.Abs(b.growth()), math.Abs(a.growth())), cmp.Compare(b.NowHiMS, a.NowHiMS), strings.Compare(a.Name, b.Name))
	})
}

// kernelThatChanged says which kernel explains that steps are longer, or shorter; "" where
// none is known to.
func (r *Result) kernelThatChanged() string {
	for _, k := range r.Kernels {
		switch {
		case !k.Significant || k.growth() > 0 != (r.ChangePercent > 0):
		case k.growth() > 0:
			return fmt.Sprintf("; devices take %.1f ms of it for %s at the least, and took %.1f ms at the most", k.NowLoMS, k.Name, k.ThenHiMS)
		default:
			return fmt.Sprintf("; devices take %.1f ms of it for %s at the most, and took %.1f ms at the least", k.NowHiMS, k.Name, k.ThenLoMS)
		}
	}
	return ""
}
