package catalog

import (
	"slices"
	"strings"
)

// What the tables of the accelerator runtimes share: C entry points that return
// a status, 0 for success, in variants of one name.

// maxValues is how many values a call's record has room for (MAX_ARGS, bpf/wire.h).
// A launch leaves one to its stack.
const maxValues = 12

// runtimeCalls makes a row for each variant of an entry point: the suffixes of
// its name, with bars between ("|_ptsz" is the bare name and one variant).
func runtimeCalls(base Function, variants string, with []func(*Function)) []Function {
	var functions []Function
	for _, suffix := range strings.Split(variants, "|") {
		f := base
		f.Symbol, f.Exact = base.Label+suffix, true
		f.Layer, f.Action, f.End, f.StatusOK = "runtime", Span, Return, true
		f.PerThread = strings.HasSuffix(suffix, "_ptsz") || strings.HasSuffix(suffix, "_ptds") || strings.HasSuffix(suffix, "_spt")
		for _, set := range with {
			set(&f)
		}
		if f.Name == FromKernel && len(f.Values) <= maxValues-2 {
			f.Values = append(slices.Clip(f.Values), Caller())
		}
		functions = append(functions, f)
	}
	return functions
}

func concat(tables ...[]Function) []Function { return slices.Concat(tables...) }

// values says what is captured.
func values(v ...Value) func(*Function) { return func(f *Function) { f.Values = v } }

// effect says what a call changes, and what is captured for that.
func effect(e Effect, v ...Value) func(*Function) {
	return func(f *Function) { f.Effect, f.Values = e, v }
}

// names has the call's string argument name the kernel that it hands out.
func names(arg uint8, v ...Value) func(*Function) {
	return func(f *Function) {
		f.Effect, f.Values = NamesKernel, v
		f.Text, f.TextArg = CStringLong, arg
	}
}

// allocates is memory of some space that the call hands out.
func allocates(space string, outOfMemory int32, v ...Value) func(*Function) {
	return func(f *Function) {
		f.Values, f.OutOfMemory = v, outOfMemory
		f.Memory = &Memory{Space: space, Level: "driver", Action: "alloc"}
	}
}

// changesMemory is a call that changes memory: free, map, unmap, reserve, unreserve.
func changesMemory(action, space string, v ...Value) func(*Function) {
	return func(f *Function) {
		f.Values = v
		f.Memory = &Memory{Space: space, Level: "driver", Action: action}
	}
}

// since says which version has the function, where no list in testdata/symbols does.
func since(version string) func(*Function) { return func(f *Function) { f.Since = version } }

func hostToDevice(f *Function)   { f.Direction = "host_to_device" }
func deviceToHost(f *Function)   { f.Direction = "device_to_host" }
func betweenDevices(f *Function) { f.Direction = "device_to_device" }

// managedMove is a prefetch: managed memory goes to the device, or home again
// where that is -1.
func managedMove(f *Function) { f.Direction = "managed" }
