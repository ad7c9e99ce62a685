package whatif

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/model/graph"
)

// mostAlike bounds the kinds of dp_ranks that stand for all: a job with more of them is
// replayed as a whole each time.
const mostAlike = 16

// alike tells dp_ranks with the same operations from others. If they take their ideal
// times, they do the same at the same moments, and one stands for all of its kind: in a
// replay in which one dp_rank takes the measured times, these and it are enough.
type alike struct {
	of    map[int][]int               // operations, by dp_rank
	kinds map[[sha256.Size]byte][]int // dp_ranks, ascending
}

func newAlike(j *job) alike {
	a := alike{map[int][]int{}, map[[sha256.Size]byte][]int{}}
	for i, o := range j.ops {
		a.of[o.DPRank] = append(a.of[o.DPRank], i)
	}
	for dp, ops := range a.of {
		kind := j.kind(ops)
		a.kinds[kind] = append(a.kinds[kind], dp)
	}
	for _, dps := range a.kinds {
		slices.Sort(dps)
	}
	return a
}

// kind is the same of dp_ranks that have the same operations.
func (j *job) kind(ops []int) (kind [sha256.Size]byte) {
	ids := make([]opID, len(ops))
	for i, op := range ops {
		o := j.ops[op]
		ids[i] = opID{o.Step, 0, placeOf(o)}
	}
	slices.SortFunc(ids, func(x, y opID) int {
		return cmp.Or(cmp.Compare(x.step, y.step), cmp.Compare(x.stage, y.stage), cmp.Compare(x.optype, y.optype), cmp.Compare(x.seq, y.seq))
	})
	h := sha256.New()
	for _, id := range ids {
		binary.Write(h, binary.LittleEndian, []int64{id.step, int64(id.stage), int64(id.seq), int64(len(id.optype))})
		h.Write([]byte(id.optype))
	}
	h.Sum(kind[:0])
	return kind
}

// around is the part of the job that tells how long its steps are if one dp_rank alone
// takes the measured times.
func (j *job) around(dp int, a alike) (*job, error) {
	if len(a.kinds) > mostAlike {
		return j, nil
	}
	chosen := []int{dp}
	for _, dps := range a.kinds {
		for _, other := range dps {
			if other != dp {
				chosen = append(chosen, other)
				break
			}
		}
	}
	slices.Sort(chosen)
	part := &job{steps: j.steps, model: j.model}
	for _, dp := range chosen {
		for _, i := range a.of[dp] {
			part.ops, part.step = append(part.ops, j.ops[i]), append(part.step, j.step[i])
			part.times.Own, part.ideal = append(part.times.Own, j.times.Own[i]), append(part.ideal, j.ideal[i])
		}
	}
	part.times = graph.Times{Delay: make([]float64, len(part.ops)), Own: part.times.Own}
	_, err := part.link()
	return part, err
}
