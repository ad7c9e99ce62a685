package kernel

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/site"
	"github.com/ebpfprof/ebpfprof/tracer/uprobe"
)

// marked is a function in which the stack pointer is the same twice, beside those of
// calibrationCode, and where the second of the two places is.
var marked = map[string]struct {
	code   []byte
	second uint64
}{
	// push %rbp; pop %rbp; push %rbp; pop %rbp; ret
	"amd64": {[]byte{0x55, 0x5d, 0x55, 0x5d, 0xc3}, 2},
	"arm64": {[]byte{0x01, 0x00, 0x00, 0x14, 0x01, 0x00, 0x00, 0x14, 0xc0, 0x03, 0x5f, 0xd6}, 4}, // b .+4; b .+4; ret
}

const (
	markedAt = 4 * functionSpacing
	timedAt  = (int(site.CostEmulated) + 1) * functionSpacing // among those of calibrationCode
	// markedCalls are timed at once: the least ring has room for their records.
	markedCalls = 100
)

// CalibrateMark measures, once in the life of the process, what probes take between a mark
// and the instant that ends what it began, nanoseconds: the way out of the first trap and
// into the second. A small allocation takes a tenth of it. 0 where it cannot be measured.
func CalibrateMark(k *Programs) int64 {
	return once(k, &calibrated.mark, MeasureMark)
}

// CalibrateReturn measures, likewise, what they take between a function's entry and its
// return.
func CalibrateReturn(k *Programs) int64 {
	return once(k, &calibrated.toReturn, MeasureReturn)
}

// once measures what has not been measured, and keeps it; 0 if that fails.
func once(k *Programs, known **int64, measure func(*Programs) (int64, error)) int64 {
	calibrated.Lock()
	defer calibrated.Unlock()
	if *known == nil {
		ns, _ := measure(k)
		*known = &ns
	}
	return **known
}

// MeasureMark calls a function of its own that takes next to no time. Nothing else may be
// recorded meanwhile.
func MeasureMark(k *Programs) (ns int64, err error) {
	function := marked[runtime.GOARCH]
	return measureTimed(k, markedAt, function.code, somethingElse(), &Sites{Entry: uprobe.Sites{
		Offsets: []uint64{markedAt, markedAt + function.second}, Cookies: []uint64{EntryCookie(0, 0, 0, false), EntryCookie(1, 0, 0, true)},
	}}, bpf.CallProbeSpec{Action: uint8(bpf.CallActionACTION_MARK)},
		bpf.CallProbeSpec{Action: uint8(bpf.CallActionACTION_EVENT), Flags: uint16(bpf.CallSpecFlagSPEC_SINCE_MARK)})
}

// MeasureReturn does so with a probe on its entry and on its return.
func MeasureReturn(k *Programs) (ns int64, err error) {
	at := uprobe.Sites{Offsets: []uint64{uint64(timedAt)}, Cookies: []uint64{Cookie(0, 0, 0, true)}}
	return measureTimed(k, timedAt, calibrationCode[runtime.GOARCH][site.CostEmulated], func() {}, &Sites{Entry: at, Ret: at},
		bpf.CallProbeSpec{Action: uint8(bpf.CallActionACTION_TIMED), Flags: uint16(bpf.CallSpecFlagSPEC_HAS_RETURN)})
}

// somethingElse is what a job does between two allocations, at the least: some microseconds
// of code of its own, with branches that cannot be foreseen. The way out of a trap that comes
// after it takes longer than in a loop of nothing but traps. A free comes just behind another
// trap.
func somethingElse() func() {
	numbers, sorted := make([]uint32, 200), make([]uint32, 200)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range numbers {
		numbers[i] = random.Uint32()
	}
	return func() {
		random.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
		copy(sorted, numbers)
		slices.Sort(sorted)
		fmt.Fprintf(io.Discard, "%v %q %x %g", sorted[:8], "something else", sorted[8:16], float64(sorted[16]))
	}
}

// measureTimed is how long a function takes, as its records say. It lies at a place of the
// calibration's file; before each call comes something else.
func measureTimed(k *Programs, at int, function []byte, before func(), sites *Sites, specs ...bpf.CallProbeSpec) (ns int64, err error) {
	if function == nil {
		return 0, fmt.Errorf("no calibration code for %s", runtime.GOARCH)
	}
	code, path, remove, err := mapCalibration(map[uint64][]byte{uint64(at): function})
	if err != nil {
		return 0, err
	}
	defer remove()
	self := &process.Process{PID: os.Getpid()}
	if self.StartTicks, err = process.StartTicks(self.PID); err != nil {
		return 0, err
	}
	if err := k.Trace(self, false); err != nil {
		return 0, err
	}
	defer k.Untrace(self)
	defer drain(k.call.Maps["life"], func([]byte) {}) // it says that the thread has been seen
	for i := range specs {
		defer k.clearCount(uint32(i))
		if err := k.SetSpec(uint32(i), &specs[i]); err != nil {
			return 0, err
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	set, err := k.Attach(path, os.Getpid(), 0, sites)
	if err != nil {
		return 0, err
	}
	defer k.removal.closeLater(set)
	return k.usualDuration(code+uintptr(at), before)
}

// usualDuration is the median of what the records say of calls of a function, the least
// of a few rounds: others use this machine too.
func (k *Programs) usualDuration(code uintptr, before func()) (int64, error) {
	reader, err := k.callRing.reader(k.call)
	if err != nil {
		return 0, err
	}
	least := int64(time.Hour)
	for range calibrationRounds {
		for range markedCalls {
			before()
			callTimes(code, 1)
		}
		var took []int64
		if err := readAll(reader, func(record []byte) {
			if len(record) >= int(unsafe.Sizeof(bpf.CallCallRecord{})) {
				r := (*bpf.CallCallRecord)(unsafe.Pointer(&record[0]))
				took = append(took, int64(r.EndNs-r.StartNs))
			}
		}); err != nil {
			return 0, err
		}
		if len(took) < markedCalls/2 {
			return 0, fmt.Errorf("%d records of %d calls", len(took), markedCalls)
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
	return readAll(reader, each)
}

// readAll reads what has arrived, and does not wait.
func readAll(reader *ringbuf.Reader, each func(record []byte)) error {
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
