package merge

import (
	"slices"

	"github.com/ebpfprof/ebpfprof/internal/exchange/cupti"
)

// apart is how far apart a call's middle and the recorded call can be, which contains it but for errors of clocks. A
// neighbour begins some microseconds later.
const apart = 1_500

// categories are those of the calls that give a device each kind of work.
var categories = map[cupti.Kind][]string{
	cupti.Kernel: {"launch", "graph"}, cupti.Copy: {"copy", "graph"}, cupti.Set: {"set", "graph"}, cupti.Wait: {"sync", "event"},
}

func anything(hands) bool { return true }

// ofThread finds the recorded call that a call is, among those of its thread. CUPTI's begins before the recorded one, and
// ends after it: when the thread is held up between the two, its middle is not in the recorded one.
func ofThread(ours []hands, c given) (hands, bool) {
	fits := func(h hands) bool { return slices.Contains(categories[c.kind], h.category) }
	if h, ok := enclosing(ours, c.Call, fits); ok {
		return h, true
	}
	if h, ok := enclosed(ours, c.Call, fits); ok {
		return h, true
	}
	return enclosing(ours, c.Call, anything) // a collective, say, whose launch has no probe
}

// upTo is how many of a thread's recorded calls begin no later than a time.
func upTo(ours []hands, at int64) int {
	n, _ := slices.BinarySearchFunc(ours, at, func(h hands, at int64) int {
		if h.start <= at {
			return -1
		}
		return 1
	})
	return n
}

// enclosing is the innermost of a thread's recorded calls that a call's middle is in, or the nearest.
func enclosing(ours []hands, c cupti.Call, fits func(hands) bool) (best hands, ok bool) {
	middle := c.StartNS + (c.EndNS-c.StartNS)/2
	nearest := int64(apart + 1)
	// Calls of one thread are one after the other, or nested: not deep.
	for i, n := upTo(ours, middle+apart), 0; i > 0 && n < 64; n++ {
		i--
		h := ours[i]
		if !fits(h) {
			continue
		}
		distance := max(h.start-middle, middle-h.end(), 0)
		if distance < nearest {
			best, nearest, ok = h, distance, true
		}
		if nearest == 0 {
			break
		}
	}
	return best, ok
}

// enclosed is the one recorded call that lies in a call: of two, nothing says which.
func enclosed(ours []hands, c cupti.Call, fits func(hands) bool) (found hands, ok bool) {
	for i, n := upTo(ours, c.EndNS+apart), 0; i > 0 && n < 64; n++ {
		i--
		h := ours[i]
		if h.start < c.StartNS-apart {
			break
		}
		if !fits(h) || h.end() > c.EndNS+apart {
			continue
		}
		if ok {
			return hands{}, false
		}
		found, ok = h, true
	}
	return found, ok
}

// alone finds the call on whatever thread, if it is in a call of one alone.
func alone(ours map[int32][]hands, c cupti.Call) (found hands, ok bool) {
	for _, calls := range ours {
		h, there := enclosing(calls, c, anything)
		if !there || h.start > c.StartNS+apart || h.end() < c.EndNS-apart {
			continue
		}
		if ok {
			return hands{}, false
		}
		found, ok = h, true
	}
	return found, ok
}
