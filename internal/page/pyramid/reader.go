package pyramid

import (
	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// reader makes calls of rows. What it has found out by the numbers of a batch's texts is forgotten when these are
// numbered anew.
type reader struct {
	batch   *dataset.Batch
	epoch   int
	lanes   map[laneKey]*Lane
	names   map[[2]int64]uint32
	numbers map[Name]uint32
	statusN map[int64]uint8 // flags of a status
	endN    map[int64]uint8 // flags of an end_method
	devices map[int64]bool  // of a layer: whether it is device

	lane    *Lane // of the row before
	laneKey laneKey
	lastNS  int64
}

// laneKey is a Key with the session's number among the batch's texts.
type laneKey struct {
	session, pid, tid int64
	device            bool
	deviceID, stream  int64
}

func (k laneKey) full(b *dataset.Batch) Key {
	return Key{Session: b.Text(k.session), PID: int32(k.pid), TID: int32(k.tid), Device: k.device, DeviceID: k.deviceID, Stream: k.stream}
}

func (r *reader) reset() {
	r.lanes, r.names, r.lane = map[laneKey]*Lane{}, map[[2]int64]uint32{}, nil
	r.statusN, r.endN, r.devices = map[int64]uint8{}, map[int64]uint8{}, map[int64]bool{}
	if r.numbers == nil {
		r.numbers = map[Name]uint32{}
	}
}

func (r *reader) begin(b *dataset.Batch) {
	if b.Epoch != r.epoch {
		r.reset()
		r.epoch = b.Epoch
	}
	r.batch = b
}

// span is the call of a row, without its name; ok is false of times that are not drawn.
func (r *reader) span(base int64, i int) (s Span, ok bool) {
	ns, duration := r.batch.Columns[colTime][i], r.batch.Columns[colDuration][i]
	start := ns - base
	// The difference may have overflown: it is then on the other side.
	if start < 0 || start > mostTime || ns < base {
		return s, false
	}
	if duration == dataset.Absent || duration < 0 {
		return Span{Start: start, Duration: noDuration, Flags: Unfinished | r.flags(i)}, true
	}
	return Span{Start: start, Duration: min(duration, mostTime-start), Flags: r.flags(i)}, true
}

func (r *reader) flags(i int) uint8 {
	status, end := r.batch.Columns[colStatus][i], r.batch.Columns[colEnd][i]
	ofStatus, known := r.statusN[status]
	if !known {
		switch r.batch.Text(status) {
		case "threw":
			ofStatus = Error | Bound
		case "error":
			ofStatus = Error
		}
		r.statusN[status] = ofStatus
	}
	ofEnd, known := r.endN[end]
	if !known {
		if r.batch.Text(end) == "next_entry" {
			ofEnd = Bound
		}
		r.endN[end] = ofEnd
	}
	return ofStatus | ofEnd
}

// key is the lane of a row.
func (r *reader) key(i int) laneKey {
	c := r.batch.Columns
	k := laneKey{session: c[colSession][i], pid: c[colPID][i], tid: c[colTID][i]}
	layer := c[colLayer][i]
	device, known := r.devices[layer]
	if !known {
		device = r.batch.Text(layer) == "device"
		r.devices[layer] = device
	}
	if device {
		k.device, k.deviceID, k.stream = true, c[colDevice][i], c[colStream][i]
	}
	return k
}
