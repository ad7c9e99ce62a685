package importer

import (
	"errors"
	"regexp"
	"strconv"
)

type perfettoTrack struct {
	parent, uuid uint64
	pid, tid     int32
	name         string
	counter      bool
	told         bool // its name has been written
	// device: its slices are work on this device, and the track is a stream of it.
	device *int32
}

// describe reads what a track is: uuid 1, name 2, process 3 (pid 1, process_name 6), thread 4 (pid 1, tid 2,
// thread_name 5), parent_uuid 5, counter 8, static_name 10.
func (p *perfettoText) describe(_ *perfettoSequence, message []byte) error {
	t := &perfettoTrack{}
	err := fieldsOf(message, func(f field) error {
		switch f.id {
		case 1:
			t.uuid = f.number
		case 2, 10:
			t.name = string(f.value)
		case 5:
			t.parent = f.number
		case 8:
			t.counter = true
		case 3, 4:
			return fieldsOf(f.value, func(of field) error {
				switch {
				case of.id == 1:
					t.pid = int32(of.number)
				case of.id == 2 && f.id == 4:
					t.tid = int32(of.number)
				case of.id == 6 && f.id == 3, of.id == 5 && f.id == 4:
					t.name = string(of.value)
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(p.tracks) >= mostPerfettoNames {
		return errors.New("it has more tracks than any trace")
	}
	if p.tracks[t.uuid] = t; p.process == 0 {
		p.process = t.pid
	}
	if t.pid != 0 && t.name != "" {
		if t.tid == 0 {
			p.named("process_name", t.pid, 0, t.name)
		} else {
			p.named("thread_name", t.pid, t.tid, t.name)
		}
	}
	return nil
}

// track is one that was described, or that is used all the same.
func (p *perfettoText) track(uuid uint64) *perfettoTrack {
	t := p.tracks[uuid]
	if t == nil {
		t = &perfettoTrack{uuid: uuid}
		if len(p.tracks) < mostPerfettoNames {
			p.tracks[uuid] = t
		}
	}
	return t
}

// place is the process and thread whose row a track is; a track that is no thread has a number of its own. In
// torch.profiler's form a device and its streams stand in their place.
func (p *perfettoText) place(t *perfettoTrack) (pid, tid int32) {
	if t.device != nil {
		return *t.device, p.number(perfettoLane{track: t.uuid}) - firstLane
	}
	pid, tid = t.pid, t.tid
	for up, n := p.tracks[t.parent], 0; up != nil && pid == 0 && n < perfettoParents; up, n = p.tracks[up.parent], n+1 {
		pid = up.pid
	}
	if pid == 0 {
		pid = p.process
	}
	if tid == 0 {
		tid = p.number(perfettoLane{track: t.uuid})
		if !t.told && t.name != "" {
			t.told = true
			p.named("thread_name", pid, tid, t.name)
		}
	}
	return pid, tid
}

// perfettoLane is a track that is no thread, or a queue of a GPU.
type perfettoLane struct {
	track uint64
	queue string
}

// firstLane is the number of the first lane, which no thread has.
const firstLane = 1 << 29

// number is in place of the thread that a lane is not.
func (p *perfettoText) number(of perfettoLane) int32 {
	n, known := p.numbers[of]
	if !known {
		n = int32(firstLane + len(p.numbers))
		p.numbers[of] = n
	}
	return n
}

// deviceInName is how tracks of devices are called: AGENT [4] QUEUE [1], GPU 0.
var deviceInName = regexp.MustCompile(`(?i)(?:agent|gpu|device) *\[?(\d{1,4})`)

// becomeDevice makes a track a stream of the device that a slice names, or that the track's name does.
func (t *perfettoTrack) becomeDevice(named any) {
	if t.device != nil {
		return
	}
	var id int32
	switch n := named.(type) {
	case int64:
		id = int32(n & 0xffff)
	case uint64:
		id = int32(n & 0xffff)
	default:
		if m := deviceInName.FindStringSubmatch(t.name); m != nil {
			n, _ := strconv.ParseInt(m[1], 10, 32)
			id = int32(n)
		}
	}
	t.device = &id
}
