package export

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

var speedscope = Format{Name: "speedscope", Kind: Sums, Help: "speedscope.app", write: (*stream).speedscope}

type speedscopeFrame struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	Line int32  `json:"line,omitempty"`
}

// speedscope's own loader keeps the whole file and a tree of it in memory, and
// fails above a few hundred megabytes: the largest stacks come first, and the
// rest is one frame with their number.
const speedscopeBytes = 256 << 20

func (s *stream) speedscope(w io.Writer) error {
	title := s.sums.group.title
	limit := s.options.MaxBytes
	if limit <= 0 {
		limit = speedscopeBytes
	}
	frames := []speedscopeFrame{}
	numbers := map[speedscopeFrame]int{}
	number := func(f speedscopeFrame) int {
		id, ok := numbers[f]
		if !ok {
			id = len(frames)
			numbers[f] = id
			frames = append(frames, f)
			limit -= int64(len(f.Name) + len(f.File) + 40)
		}
		return id
	}
	samples, weights := [][]int{}, []int64{}
	var total, rest, cut int64
	for i := range s.sums.profile {
		x := &s.sums.profile[i]
		total += x.WeightNS
		if limit < 0 {
			rest += x.WeightNS
			cut++
			continue
		}
		var path []int
		for _, title := range x.Titles() {
			path = append(path, number(speedscopeFrame{Name: title}))
		}
		for _, f := range slices.Backward(x.Frames) {
			path = append(path, number(speedscopeFrame{f.Label(), f.File, f.Line}))
		}
		limit -= int64(8*len(path) + 16)
		samples, weights = append(samples, path), append(weights, x.WeightNS)
	}
	if cut > 0 {
		samples = append(samples, []int{number(speedscopeFrame{Name: fmt.Sprintf("[%d smaller stacks, which did not fit]", cut)})})
		weights = append(weights, rest)
		s.result.leave(cut, "smaller stacks did not fit and were merged into one frame")
	}
	return json.NewEncoder(w).Encode(map[string]any{
		"$schema":  "https://www.speedscope.app/file-format-schema.json",
		"exporter": "ebpfprof",
		"name":     title,
		"shared":   map[string]any{"frames": frames},
		"profiles": []any{map[string]any{
			"type": "sampled", "name": title, "unit": "nanoseconds", "startValue": 0, "endValue": total,
			"samples": samples, "weights": weights,
		}},
	})
}
