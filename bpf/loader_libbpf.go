//go:build libbpf

package bpf

import "github.com/cilium/ebpf"

// NewCollection loads a specification. With the build tag libbpf, which is for tests, another
// loader can take its place: it gets the objects as they are compiled from Objects.
var NewCollection = ebpf.NewCollectionWithOptions

func newCollection(spec *ebpf.CollectionSpec, options ebpf.CollectionOptions) (*ebpf.Collection, error) {
	return NewCollection(spec, options)
}

// Objects are the compiled objects, by the names of their sources.
func Objects() map[string][]byte {
	return map[string][]byte{
		"call": _CallBytes, "life": _LifeBytes, "tasks": _TasksBytes, "pythonwalk": _PythonWalkBytes,
		"nativewalk": _NativeWalkBytes, "sample": _SampleBytes, "activities": _ActivitiesBytes, "ability": _AbilityBytes,
	}
}
