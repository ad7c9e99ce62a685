// Package nvml calls NVIDIA's management library, libnvidia-ml, which is loaded when it is opened: no header and no C
// compiler at build time, and a program that uses it starts where there is no driver. Signatures, structs and constants
// are those of NVML's public manual (API 12); of functions with versions the oldest that has what is asked for.
//
// The package is no part of the public API: it may change with any version.
package nvml

import (
	"errors"
	"fmt"
	"unsafe"
)

var (
	// ErrNoLibrary is that of a machine without a driver, or of a container that does not see it.
	ErrNoLibrary = errors.New("libnvidia-ml.so.1 is not there: no NVIDIA driver is installed, or not in this container")
	// ErrStatic is that of a program built with -tags static.
	ErrStatic = errors.New("this binary is static, and so cannot load NVIDIA's library: build it without -tags static")
)

// Library is libnvidia-ml. Calls of a function that the driver lacks return FunctionNotFound; Has tells before.
type Library struct {
	handle    uintptr
	functions map[string]uintptr
}

// Open loads the library, the dynamic linker's if the path is empty, and starts it.
func Open(path string) (*Library, error) {
	if path == "" {
		path = "libnvidia-ml.so.1"
	}
	handle, err := load(path)
	if err != nil {
		return nil, err
	}
	l := &Library{handle: handle, functions: map[string]uintptr{}}
	start := "nvmlInit_v2"
	if !l.Has(start) {
		start = "nvmlInit"
	}
	if result := l.call(start); result != Success {
		return nil, fmt.Errorf("starting NVML: %s", l.Text(result))
	}
	return l, nil
}

// Close ends the library's use. It stays loaded: a driver's library starts threads that may outlive it.
func (l *Library) Close() { l.call("nvmlShutdown") }

// Has reports whether the driver has all these functions.
func (l *Library) Has(names ...string) bool {
	for _, name := range names {
		if l.function(name) == 0 {
			return false
		}
	}
	return true
}

func (l *Library) function(name string) uintptr {
	at, known := l.functions[name]
	if !known {
		at = symbol(l.handle, name)
		l.functions[name] = at
	}
	return at
}

// call calls a function of integers and pointers that returns a Return.
//
//go:uintptrescapes
func (l *Library) call(name string, arguments ...uintptr) Return {
	at := l.function(name)
	if at == 0 {
		return FunctionNotFound
	}
	return Return(uint32(invoke(at, arguments...)))
}

// Text is the library's name of a result.
func (l *Library) Text(r Return) string {
	if at := l.function("nvmlErrorString"); at != 0 {
		return text(at, r)
	}
	return fmt.Sprintf("error %d", r)
}

// Device is a GPU.
type Device struct {
	library *Library
	handle  uintptr
}

// Count is how many GPUs the process sees.
func (l *Library) Count() (n uint32, r Return) {
	return n, l.call("nvmlDeviceGetCount_v2", uintptr(unsafe.Pointer(&n)))
}

// Device is the GPU with an index below Count.
func (l *Library) Device(index uint32) (d Device, r Return) {
	d.library = l
	return d, l.call("nvmlDeviceGetHandleByIndex_v2", uintptr(index), uintptr(unsafe.Pointer(&d.handle)))
}

// UUID names the device, whatever the order of devices is.
func (d Device) UUID() (string, Return) {
	var name [96]byte
	r := d.library.call("nvmlDeviceGetUUID", d.handle, uintptr(unsafe.Pointer(&name)), uintptr(len(name)))
	for i, c := range name {
		if c == 0 {
			return string(name[:i]), r
		}
	}
	return string(name[:]), r
}

// number calls a function that returns an unsigned int.
func (d Device) number(name string) (v uint32, r Return) {
	return v, d.library.call(name, d.handle, uintptr(unsafe.Pointer(&v)))
}

// numberOf calls a function that returns an unsigned int of one kind.
func (d Device) numberOf(name string, kind uint32) (v uint32, r Return) {
	return v, d.library.call(name, d.handle, uintptr(kind), uintptr(unsafe.Pointer(&v)))
}

// long calls a function that returns an unsigned long long.
func (d Device) long(name string) (v uint64, r Return) {
	return v, d.library.call(name, d.handle, uintptr(unsafe.Pointer(&v)))
}

// PowerUsage is in milliwatts.
func (d Device) PowerUsage() (uint32, Return) { return d.number("nvmlDeviceGetPowerUsage") }

// Energy is in millijoules since the driver was loaded.
func (d Device) Energy() (uint64, Return) { return d.long("nvmlDeviceGetTotalEnergyConsumption") }

// Temperature of the GPU's die, in degrees Celsius.
func (d Device) Temperature() (uint32, Return) {
	const gpu = 0
	return d.numberOf("nvmlDeviceGetTemperature", gpu)
}

// Clock is in MHz.
func (d Device) Clock(c Clock) (uint32, Return) {
	return d.numberOf("nvmlDeviceGetClockInfo", uint32(c))
}

// PCIeThroughput is in KB/s, counted for 20 ms while the call waits.
func (d Device) PCIeThroughput(way PCIeCounter) (uint32, Return) {
	return d.numberOf("nvmlDeviceGetPcieThroughput", uint32(way))
}

// ThrottleReasons are bits.
func (d Device) ThrottleReasons() (uint64, Return) {
	return d.long("nvmlDeviceGetCurrentClocksThrottleReasons")
}

// Memory is nvmlMemory_t, in bytes.
type Memory struct{ Total, Free, Used uint64 }

// Memory is that of the device.
func (d Device) Memory() (m Memory, r Return) {
	return m, d.library.call("nvmlDeviceGetMemoryInfo", d.handle, uintptr(unsafe.Pointer(&m)))
}

// Utilization is nvmlUtilization_t, in percent of a window that the driver chooses.
type Utilization struct{ GPU, Memory uint32 }

// Utilization is the latest that the driver has.
func (d Device) Utilization() (u Utilization, r Return) {
	return u, d.library.call("nvmlDeviceGetUtilizationRates", d.handle, uintptr(unsafe.Pointer(&u)))
}

// Violation is nvmlViolationTime_t, in nanoseconds.
type Violation struct{ Reference, Time uint64 }

// Violation is for how long clocks were held down for a reason.
func (d Device) Violation(p Policy) (v Violation, r Return) {
	return v, d.library.call("nvmlDeviceGetViolationStatus", d.handle, uintptr(p), uintptr(unsafe.Pointer(&v)))
}

// Sample is nvmlSample_t: a time in microseconds and a value of the type that comes with the samples.
type Sample struct {
	Time  uint64
	Value [8]byte
}

// most bounds what is allocated for a number that the library tells.
const most = 1 << 16

// Samples are those that the driver took after a time.
func (d Device) Samples(kind Sampling, since uint64) (ValueType, []Sample, Return) {
	const name = "nvmlDeviceGetSamples"
	var of ValueType
	var n uint32
	ask := func(into *Sample) Return {
		return d.library.call(name, d.handle, uintptr(kind), uintptr(since), uintptr(unsafe.Pointer(&of)),
			uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(into)))
	}
	if r := ask(nil); r != Success || n == 0 || n > most {
		return of, nil, r
	}
	samples := make([]Sample, n)
	r := ask(&samples[0])
	return of, samples[:min(int(n), len(samples))], r
}

// Field is nvmlFieldValue_t.
type Field struct {
	ID, Scope     uint32
	Time, Latency int64
	Type          uint32
	Result        uint32
	Value         [8]byte
}

// Fields fills values in by their IDs and scopes.
func (d Device) Fields(values []Field) Return {
	if len(values) == 0 {
		return Success
	}
	return d.library.call("nvmlDeviceGetFieldValues", d.handle, uintptr(len(values)), uintptr(unsafe.Pointer(&values[0])))
}

// Process is nvmlProcessUtilizationSample_t: percentages, and the time of the sample in microseconds.
type Process struct {
	PID                          uint32
	Time                         uint64
	SM, Memory, Encoder, Decoder uint32
}

// Processes is what each used of the device, sampled after a time. Before the first sample there are none.
func (d Device) Processes(since uint64) ([]Process, Return) {
	const name = "nvmlDeviceGetProcessUtilization"
	var n uint32
	ask := func(into *Process) Return {
		return d.library.call(name, d.handle, uintptr(unsafe.Pointer(into)), uintptr(unsafe.Pointer(&n)), uintptr(since))
	}
	if r := ask(nil); r != InsufficientSize || n == 0 || n > most {
		if r == InsufficientSize {
			r = Success
		}
		return nil, r
	}
	processes := make([]Process, n)
	r := ask(&processes[0])
	return processes[:min(int(n), len(processes))], r
}
