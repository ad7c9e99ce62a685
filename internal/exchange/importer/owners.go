package importer

import (
	"cmp"
	"maps"
	"slices"
)

// Several ranks in one file of torch.profiler, as tools that merge traces write them: each rank
// numbers its launches by itself, and work on a device says which device it ran on, and not who
// launched it.

// owners tell which process a device works for. One device belongs to one process; where one
// process alone calls the runtime, to that.
type owners struct {
	places map[int32]int64 // of the processes that call the runtime, in the order of their first calls
	calls  map[launch]int64
	works  []deviceWork
	known  map[int32]int32 // process, by device

	calling, operating map[int32]int // calls of the runtime, and operators, by process
}

// launch is a number that a process gave, deviceWork what a device did for one that had it.
type launch struct {
	pid    int32
	number int64
}

type deviceWork struct {
	device        int32
	number, start int64
}

const (
	// ownersSample bounds how much is kept of each process, and of all devices, to tell by.
	ownersSample = 1 << 13
	// mostOwners are so many processes that a file may have; devices of more are not told apart.
	mostOwners = 64
)

func newOwners() owners {
	return owners{places: map[int32]int64{}, calls: map[launch]int64{}, calling: map[int32]int{}, operating: map[int32]int{}}
}

// busy reports whether a process calls the runtime or runs operators, as far as any of the file does.
func (o *owners) busy(pid int32) bool {
	return len(o.calling)+len(o.operating) == 0 || o.calling[pid]+o.operating[pid] > 0
}

// call notes a process's call of the runtime.
func (o *owners) call(r *row) {
	if r.call.Category != "overhead" { // of the profiler
		o.calling[r.pid]++
	}
	place, known := o.places[r.pid]
	if !known {
		place = int64(len(o.places))
		o.places[r.pid] = place
	}
	if _, twice := o.calls[launch{r.pid, r.correlation}]; !twice && place < mostOwners && len(o.calls) < ownersSample*(int(place)+1) {
		o.calls[launch{r.pid, r.correlation}] = r.start
	}
}

// work notes what a device did.
func (o *owners) work(r *row) {
	if r.pid == 0 && r.correlation != 0 && r.detail.DeviceID != nil && len(o.works) < ownersSample {
		o.works = append(o.works, deviceWork{*r.detail.DeviceID, r.correlation, r.start})
	}
}

// settle finds for each device the process whose launches came before its work, and not after
// it. Of several of which that is so, it is one that no other device works for: the devices of
// which it is plainest come first.
func (o *owners) settle(when possible) {
	o.known = map[int32]int32{}
	if len(o.places) < 2 || len(o.places) > mostOwners {
		return
	}
	pids := slices.SortedFunc(maps.Keys(o.places), func(a, b int32) int { return cmp.Compare(o.places[a], o.places[b]) })
	o.works = slices.DeleteFunc(o.works, func(w deviceWork) bool { return !when.has(w.start) })
	votes := o.votes(pids)
	taken := map[int32]bool{}
	for len(votes) > 0 {
		device, owner, plainest := int32(0), int32(0), -1
		for _, d := range slices.Sorted(maps.Keys(votes)) {
			free := slices.DeleteFunc(slices.Clone(pids), func(p int32) bool { return taken[p] })
			if len(free) == 0 {
				free = pids
			}
			slices.SortStableFunc(free, func(a, b int32) int { return cmp.Compare(votes[d][b], votes[d][a]) })
			margin := 0
			if len(free) > 1 {
				margin = votes[d][free[0]] - votes[d][free[1]]
			}
			if margin > plainest {
				device, owner, plainest = d, free[0], margin
			}
		}
		if votes[device][owner] > 0 {
			o.known[device], taken[owner] = owner, true
		}
		delete(votes, device)
	}
}

// votes are, by device and process, how many of the device's works came after the process's launch of
// the same number, less those that came before it.
func (o *owners) votes(pids []int32) map[int32]map[int32]int {
	all := map[int32]map[int32]int{}
	for _, w := range o.works {
		if all[w.device] == nil {
			all[w.device] = map[int32]int{}
		}
		for _, pid := range pids {
			begun, launched := o.calls[launch{pid, w.number}]
			switch {
			case launched && begun <= w.start:
				all[w.device][pid]++
			case launched:
				all[w.device][pid]--
			}
		}
	}
	return all
}

// of is the process that a device's row is of; 0 where that is not known.
func (o *owners) of(r *row) int32 {
	if r.pid != 0 || r.detail.DeviceID == nil {
		return r.pid
	}
	return o.known[*r.detail.DeviceID]
}

// key makes a number of one process one of the file.
func (o *owners) key(pid int32, number int64) int64 { return number ^ o.places[pid]<<48 }
