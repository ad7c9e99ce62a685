package spec

import (
	"slices"
	"strings"
)

// What the tables of the accelerator runtimes share: C entry points that return
// a status, 0 for success, some in variants of one name.

// maxValues is how many values a call's record has room for (MAX_ARGS, bpf/wire.h).
// A launch leaves one to its stack.
const maxValues = 12

// EntryPoint is the row of an entry point, whose symbol is base's label.
func EntryPoint(base Function, with []func(*Function)) Function {
	return entryPoint(base, "", with)
}

// EntryPoints makes a row for each variant of an entry point: the suffixes of
// its name, with bars between ("|_ptsz" is the bare name and one variant). A launch
// has the address of its caller too.
func EntryPoints(base Function, variants string, with []func(*Function)) []Function {
	var functions []Function
	for suffix := range strings.SplitSeq(variants, "|") {
		f := entryPoint(base, suffix, with)
		if f.Name == FromKernel && len(f.Values) <= maxValues-2 {
			f.Values = append(slices.Clip(f.Values), Caller())
		}
		functions = append(functions, f)
	}
	return functions
}

func entryPoint(f Function, suffix string, with []func(*Function)) Function {
	f.Symbol, f.Exact = f.Label+suffix, true
	f.Layer, f.Action, f.End, f.StatusOK = "runtime", Span, Return, true
	f.PerThread = strings.HasSuffix(suffix, "_ptsz") || strings.HasSuffix(suffix, "_ptds") || strings.HasSuffix(suffix, "_spt")
	for _, set := range with {
		set(&f)
	}
	return f
}

// Captures says what is captured.
func Captures(v ...Value) func(*Function) { return func(f *Function) { f.Values = v } }

// Changes says what a call changes, and what is captured for that.
func Changes(e Effect, v ...Value) func(*Function) {
	return func(f *Function) { f.Effect, f.Values = e, v }
}

// NamedBy has the call's string argument name the kernel that it hands out.
func NamedBy(arg uint8, v ...Value) func(*Function) {
	return func(f *Function) {
		f.Effect, f.Values = NamesKernel, v
		f.Text, f.TextArg = CStringLong, arg
	}
}

// Allocates is memory of some space that the call hands out.
func Allocates(space string, outOfMemory int32, v ...Value) func(*Function) {
	return func(f *Function) {
		f.Values, f.OutOfMemory = v, outOfMemory
		f.Memory = &Memory{Space: space, Level: "driver", Action: "alloc"}
	}
}

// ChangesMemory is a call that changes memory: free, map, unmap, reserve, unreserve.
func ChangesMemory(action, space string, v ...Value) func(*Function) {
	return func(f *Function) {
		f.Values = v
		f.Memory = &Memory{Space: space, Level: "driver", Action: action}
	}
}

// Since says which version has the function, where no list in testdata/symbols does.
func Since(version string) func(*Function) { return func(f *Function) { f.Since = version } }

// HostToDevice, DeviceToHost and BetweenDevices are the direction of a copy.
func HostToDevice(f *Function)   { f.Direction = "host_to_device" }
func DeviceToHost(f *Function)   { f.Direction = "device_to_host" }
func BetweenDevices(f *Function) { f.Direction = "device_to_device" }

// ManagedMove is a prefetch: managed memory goes to the device, or home again
// where that is -1.
func ManagedMove(f *Function) { f.Direction = "managed" }
