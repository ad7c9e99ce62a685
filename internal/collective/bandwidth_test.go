package collective

import (
	"math"
	"testing"
)

// What nccl-tests computes: busbw = size / time × factor, size as it prints it.
func TestBusBytesAreThoseOfNCCLTests(t *testing.T) {
	const ranks, shard = 8, 1 << 20 // bytes of one rank
	for name, c := range map[string]struct{ size, factor float64 }{
		"ncclAllReduce":     {shard, 2 * 7.0 / 8},
		"ncclAllGather":     {shard * ranks, 7.0 / 8},
		"ncclReduceScatter": {shard * ranks, 7.0 / 8},
		"ncclAlltoAll":      {shard * ranks, 7.0 / 8},
		"ncclAllToAll":      {shard * ranks, 7.0 / 8},
		"ncclGather":        {shard * ranks, 7.0 / 8},
		"ncclScatter":       {shard * ranks, 7.0 / 8},
		"ncclBroadcast":     {shard, 1},
		"ncclBcast":         {shard, 1},
		"ncclReduce":        {shard, 1},
		"ncclSend":          {shard, 1},
		"ncclRecv":          {shard, 1},
	} {
		got, ok := BusBytes(name, shard, ranks)
		if want := c.size * c.factor; !ok || math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: %v, %t, want %v", name, got, ok, want)
		}
	}
	if len(busShares) != 12 {
		t.Errorf("%d operations, 12 are tested", len(busShares))
	}
}

func TestOneRankMovesNothingBetweenRanks(t *testing.T) {
	for _, name := range []string{"ncclAllReduce", "ncclAllGather", "ncclGather"} {
		if got, ok := BusBytes(name, 4096, 1); !ok || got != 0 {
			t.Errorf("%s: %v, %t", name, got, ok)
		}
	}
}

func TestWhatIsNotKnownHasNoBusBytes(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes int64
		ranks int
	}{{"ncclAllToAllv", 1, 2}, {"cuMemcpy", 1, 2}, {"ncclAllReduce", 1, 0}, {"ncclAllReduce", -1, 2}} {
		if got, ok := BusBytes(c.name, c.bytes, c.ranks); ok {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
