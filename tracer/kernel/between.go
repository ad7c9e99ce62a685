package kernel

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/uprobe"
)

// Between is what the probes of a call take between the two readings of the clock that
// say how long it took, nanoseconds: the way out of the first trap and into the second.
// Of an operator that is little; a small allocation takes a tenth of it.
type Between struct {
	Mark   int64 // from a mark to the instant that ends what it began
	Return int64 // from an entry to its return probe
}

// marked is a function in which the stack pointer is the same twice, and returned one
// that does nothing, beside those of calibrationCode.
var marked, returned = map[string][]byte{
	"amd64": {0x55, 0x5d, 0x55, 0x5d, 0xc3}, // push %rbp; pop %rbp; push %rbp; pop %rbp; ret
	"arm64": {0x01, 0x00, 0x00, 0x14, 0x01, 0x00, 0x00, 0x14, 0xc0, 0x03, 0x5f, 0xd6},
}, map[string][]byte{
	"amd64": calibrationCode["amd64"][1], "arm64": calibrationCode["arm64"][1],
}

const (
	markedAt   = 4 * functionSpacing
	returnedAt = 5 * functionSpacing
	// betweenCalls are timed at once: the least ring has room for their records.
	betweenCalls = 100
)

// secondSite is where in marked the second of the two like instructions is.
var secondSite = map[string]uint64{"amd64": 2, "arm64": 4}

// CalibrateBetween measures it, once in the life of the process: 0 where it cannot be.
func CalibrateBetween(k *Programs) Between {
	calibrated.Lock()
	defer calibrated.Unlock()
	if calibrated.between == nil {
		between, err := MeasureBetween(k)
		if err != nil {
			between = Between{}
		}
		calibrated.between = &between
	}
	return *calibrated.between
}

// MeasureBetween calls functions of its own that take next to no time, with the probes
// that calls have. Nothing else may be recorded meanwhile.
func MeasureBetween(k *Programs) (b Between, err error) {
	if secondSite[runtime.GOARCH] == 0 {
		return b, fmt.Errorf("no calibration code for %s", runtime.GOARCH)
	}
	code, path, remove, err := mapCalibration(map[uint64][]byte{markedAt: marked[runtime.GOARCH], returnedAt: returned[runtime.GOARCH]})
	if err != nil {
		return b, err
	}
	defer remove()
	self := &process.Process{PID: os.Getpid()}
	if self.StartTicks, err = process.StartTicks(self.PID); err != nil {
		return b, err
	}
	if err := k.Trace(self, false); err != nil {
		return b, err
	}
	defer k.Untrace(self)
	defer k.clearCount(0)
	defer k.clearCount(1)
	defer drain(k.call.Maps["life"], func([]byte) {}) // it says that the thread has been seen

	var sets []*Links
	defer func() { k.removal.closeLater(sets...) }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	measure := func(at uintptr, sites *Sites, specs ...bpf.CallProbeSpec) (int64, error) {
		for i := range specs {
			if err := k.SetSpec(uint32(i), &specs[i]); err != nil {
				return 0, err
			}
		}
		set, err := k.Attach(path, os.Getpid(), 0, sites)
		if err != nil {
			return 0, err
		}
		sets = append(sets, set)
		return k.usualDuration(code + at)
	}
	mark := bpf.CallProbeSpec{Action: uint8(bpf.CallActionACTION_MARK)}
	since := bpf.CallProbeSpec{Action: uint8(bpf.CallActionACTION_EVENT), Flags: uint16(bpf.CallSpecFlagSPEC_SINCE_MARK)}
	if b.Mark, err = measure(markedAt, &Sites{Entry: uprobe.Sites{
		Offsets: []uint64{markedAt, markedAt + secondSite[runtime.GOARCH]}, Cookies: []uint64{Cookie(0, 0, 0, true), Cookie(1, 0, 0, true)},
	}}, mark, since); err != nil {
		return b, err
	}
	call := bpf.CallProbeSpec{Action: uint8(bpf.CallActionACTION_SPAN), Flags: uint16(bpf.CallSpecFlagSPEC_HAS_RETURN)}
	at := uprobe.Sites{Offsets: []uint64{returnedAt}, Cookies: []uint64{Cookie(0, 0, 0, true)}}
	b.Return, err = measure(returnedAt, &Sites{Entry: at, Ret: at}, call)
	return b, err
}

// usualDuration is the median of what the records say of calls of a function, the least
// of a few rounds: others use this machine too.
func (k *Programs) usualDuration(code uintptr) (int64, error) {
	least := int64(time.Hour)
	for range calibrationRounds {
		callTimes(code, betweenCalls)
		var took []int64
		if err := drain(k.call.Maps["calls"], func(record []byte) {
			if len(record) >= int(unsafe.Sizeof(bpf.CallCallRecord{})) {
				r := (*bpf.CallCallRecord)(unsafe.Pointer(&record[0]))
				took = append(took, int64(r.EndNs-r.StartNs))
			}
		}); err != nil {
			return 0, err
		}
		if len(took) < betweenCalls/2 {
			return 0, fmt.Errorf("%d records of %d calls", len(took), betweenCalls)
		}
		slices.Sort(took)
		least = min(least, took[len(took)/2])
	}
	return least, nil
}

// drain reads all that is in a ring buffer.
func drain(m *ebpf.Map, each func(record []byte)) error {
	reader, err := ringbuf.NewReader(m)
	if err != nil {
		return err
	}
	defer reader.Close()
	reader.SetDeadline(time.Unix(1, 0))
	for {
		record, err := reader.Read()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		each(record.RawSample)
	}
}
