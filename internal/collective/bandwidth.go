// Package collective says what the bytes of a collective call mean.
package collective

// busShares is the part of the bytes of a call that its slowest link has to carry, for
// n ranks, as nccl-tests counts it (its src/*.cu, the functions …GetBw).
// There the size of AllGather, ReduceScatter, AlltoAll, Gather and Scatter is that of
// the whole buffer, n times one rank's; span.bytes is one rank's, what the call's count
// argument says, and so the factor (n-1)/n becomes n-1.
var busShares = map[string]func(n float64) float64{
	"ncclAllReduce":     func(n float64) float64 { return 2 * (n - 1) / n },
	"ncclAllGather":     othersShares,
	"ncclReduceScatter": othersShares,
	"ncclAlltoAll":      othersShares,
	"ncclAllToAll":      othersShares, // RCCL's name
	"ncclGather":        othersShares,
	"ncclScatter":       othersShares,
	"ncclBroadcast":     once,
	"ncclBcast":         once,
	"ncclReduce":        once,
	"ncclSend":          once,
	"ncclRecv":          once,
}

func othersShares(n float64) float64 { return n - 1 }
func once(float64) float64           { return 1 }

// BusBytes is how many bytes the busiest link carries for a call of that name
// (span.name), with span.bytes of one rank, among so many ranks (span.ranks): divided by
// the time that the collective took, it is the bus bandwidth of nccl-tests, which can be
// held against the hardware's whatever the operation and the number of ranks. It is not
// ok for other calls, and where ranks are not known (ranks below 1) or bytes are none.
//
// The host's duration of a call is no time of a collective, which runs on the device.
func BusBytes(name string, bytes int64, ranks int) (onBus float64, ok bool) {
	share, ok := busShares[name]
	if !ok || ranks < 1 || bytes < 0 {
		return 0, false
	}
	return share(float64(ranks)) * float64(bytes), true
}
