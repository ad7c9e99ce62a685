package kernel

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/budget"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/site"
	"github.com/ebpfprof/ebpfprof/tracer/uprobe"
)

// What a hit costs differs thirtyfold between machines and between sites, so
// the budget asks the machine: it calls functions of its own, a few
// instructions of machine code in a file in memory, with and without a probe.

// callTimes calls the function at code, in assembly: no Go function can be
// relied upon to begin with a given instruction.
func callTimes(code uintptr, times int)

// calibrationCode is one function for each cost class, at multiples of 64 bytes (0 would mean no address to the loader).
var calibrationCode = map[string][3][]byte{
	"amd64": {
		site.CostNop5:     {0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3}, // nopl 0(%rax,%rax,1); ret
		site.CostEmulated: {0x55, 0x5d, 0xc3},                   // push %rbp; pop %rbp; ret
		site.CostStepped:  {0x31, 0xc0, 0xc3},                   // xor %eax,%eax; ret
	},
	"arm64": {
		site.CostNop5:     {0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6}, // nop; ret
		site.CostEmulated: {0x01, 0x00, 0x00, 0x14, 0xc0, 0x03, 0x5f, 0xd6}, // b .+4; ret
		site.CostStepped:  {0x00, 0x00, 0x80, 0xd2, 0xc0, 0x03, 0x5f, 0xd6}, // mov x0, #0; ret
	},
}

// fallbackCost is the design machine's, for when the calibration cannot run.
var fallbackCost = budget.HitCost{Warm: [3]float64{250, 560, 19000}, Cold: 2000}

const (
	calibrationRounds = 5
	calibrationCalls  = 400
	// steppedCalls of a site that is single-stepped take as long: a hit takes up to 19 µs.
	steppedCalls    = 40
	functionSpacing = 64
	codeBytes       = 4096
)

var calibrated struct {
	sync.Mutex
	cost           budget.HitCost
	known          bool
	mark, toReturn *int64 // nil: not measured yet
}

// priceFactor is what the price of a hit is multiplied with: a test that is to hold on any
// machine has it linked in (-ldflags "-X …/tracer/kernel.priceFactor=3"), so that there is
// no switch in what people run.
var priceFactor = "1"

// Calibrate measures what a hit costs on this machine, by the cost class of
// its site, with the program that counts hits: the least of a few rounds. It
// is done once in the life of the process.
func Calibrate(k *Programs) budget.HitCost {
	calibrated.Lock()
	defer calibrated.Unlock()
	if !calibrated.known {
		cost, err := MeasureHits(k)
		if err != nil {
			cost = fallbackCost
		}
		calibrated.cost, calibrated.known = scaled(cost, priceFactor), true
	}
	return calibrated.cost
}

// scaled multiplies a price with a factor, if that is one.
func scaled(cost budget.HitCost, by string) budget.HitCost {
	factor, err := strconv.ParseFloat(by, 64)
	if err != nil || factor <= 0 {
		return cost
	}
	for i := range cost.Warm {
		cost.Warm[i] *= factor
	}
	cost.Cold *= factor
	return cost
}

func MeasureHits(k *Programs) (cost budget.HitCost, err error) {
	functions, ok := calibrationCode[runtime.GOARCH]
	if !ok {
		return cost, fmt.Errorf("no calibration code for %s", runtime.GOARCH)
	}
	code, path, remove, err := mapCalibration(spaced(functions))
	if err != nil {
		return cost, err
	}
	defer remove()
	self := &process.Process{PID: os.Getpid()}
	if self.StartTicks, err = process.StartTicks(self.PID); err != nil {
		return cost, err
	}
	if err := k.Trace(self, false); err != nil {
		return cost, err
	}
	defer k.Untrace(self)
	defer k.clearCount(0)

	// Nothing waits for their removal, some 40 ms each.
	var sets []*Links
	defer func() { k.removal.closeLater(sets...) }()
	others := make([]byte, coldBytes)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for class := range functions {
		at := uintptr((class + 1) * functionSpacing)
		calls := calibrationCalls
		if class == int(site.CostStepped) {
			calls = steppedCalls
		}
		bare, bareCold := timeCalls(code+at, calls), 0.0
		if class == int(site.CostEmulated) {
			bareCold = timeColdCalls(code+at, others)
		}
		set, err := k.AttachLearn(path, os.Getpid(), &Sites{Entry: uprobe.Sites{Offsets: []uint64{uint64(at)}, Cookies: []uint64{0}}})
		if err != nil {
			return cost, err
		}
		sets = append(sets, set)
		cost.Warm[class] = max(timeCalls(code+at, calls)-bare, 10)
		if class == int(site.CostEmulated) {
			cost.Cold = max(timeColdCalls(code+at, others)-bareCold-cost.Warm[class], 0)
		}
	}
	return cost, nil
}

const (
	coldCalls = 48
	// coldBytes are touched between two calls: more than the caches next to the
	// core hold, as a training step does.
	coldBytes = 4 << 20
	cacheLine = 64
)

// timeColdCalls is the time of a call before which the caches were filled with
// something else: the lower quartile, since others use this machine too.
func timeColdCalls(code uintptr, others []byte) float64 {
	times := make([]time.Duration, coldCalls)
	for i := range times {
		for at := 0; at < len(others); at += cacheLine {
			others[at]++
		}
		start := time.Now()
		callTimes(code, 1)
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	return float64(times[coldCalls/4])
}

// timeCalls is the time of one of some calls, nanoseconds, the least of a few rounds.
func timeCalls(code uintptr, calls int) float64 {
	best := time.Hour
	for range calibrationRounds {
		start := time.Now()
		callTimes(code, calls)
		best = min(best, time.Since(start))
	}
	return float64(best) / float64(calls)
}

// spaced are functions at the places of their cost classes.
func spaced(functions [3][]byte) map[uint64][]byte {
	at := map[uint64][]byte{}
	for class, function := range functions {
		at[uint64((class+1)*functionSpacing)] = function
	}
	return at
}

// mapCalibration puts the functions into a file in memory, because only a file
// can be probed, each at its offset, and maps it executable. remove undoes both.
func mapCalibration(functions map[uint64][]byte) (code uintptr, path string, remove func(), err error) {
	fd, err := unix.MemfdCreate("ebpfprof-calibration", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, "", nil, fmt.Errorf("making the calibration code: %w", err)
	}
	page := make([]byte, codeBytes)
	for at, function := range functions {
		copy(page[at:], function)
	}
	if _, err := unix.Pwrite(fd, page, 0); err != nil {
		unix.Close(fd)
		return 0, "", nil, fmt.Errorf("writing the calibration code: %w", err)
	}
	mapped, err := unix.Mmap(fd, 0, codeBytes, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		unix.Close(fd)
		return 0, "", nil, fmt.Errorf("mapping the calibration code: %w", err)
	}
	return uintptr(unsafe.Pointer(&mapped[0])), fmt.Sprintf("/proc/self/fd/%d", fd),
		func() { unix.Munmap(mapped); unix.Close(fd) }, nil
}
