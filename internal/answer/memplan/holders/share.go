package holders

import (
	"cmp"
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
)

// Share is what one holder holds.
type Share struct {
	Key    string  `json:"key"`
	Bytes  int64   `json:"bytes"`
	Blocks int     `json:"blocks"`
	Share  float64 `json:"share"` // of all bytes looked at
}

// Shares are the holders of some bytes, by each way to group them.
type Shares struct {
	ByLine     []Share `json:"by_line"`
	ByModule   []Share `json:"by_module"`
	ByOperator []Share `json:"by_operator"`
	ByPhase    []Share `json:"by_phase"` // a guess
}

// Holders says who holds the blocks with some positions.
func (c *Context) Holders(all []blocks.Block, alive []int) Shares {
	by := func(key func(*blocks.Block) string) []Share {
		var total int64
		index := map[string]int{}
		var shares []Share
		for _, i := range alive {
			k := key(&all[i])
			at, is := index[k]
			if !is {
				at = len(shares)
				index[k], shares = at, append(shares, Share{Key: k})
			}
			shares[at].Bytes += all[i].Bytes
			shares[at].Blocks++
			total += all[i].Bytes
		}
		for i := range shares {
			shares[i].Share = float64(shares[i].Bytes) / float64(max(total, 1))
		}
		slices.SortFunc(shares, func(a, b Share) int {
			return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Key, b.Key))
		})
		return shares
	}
	return Shares{by(c.Line), by(c.Module), by(c.Operator), by(c.Phase)}
}
