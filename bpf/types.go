package bpf

import (
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// The kernel's type information, and that of all its modules, takes tens of
// milliseconds to read. All that this process loads at its start shares one reading.
var kernelTypes struct {
	sync.Mutex
	cache *btf.Cache
}

// KernelTypes are the kernel's types, read once until ForgetKernelTypes.
func KernelTypes() *btf.Cache {
	kernelTypes.Lock()
	defer kernelTypes.Unlock()
	if kernelTypes.cache == nil {
		kernelTypes.cache = btf.NewCache()
	}
	return kernelTypes.cache
}

// ForgetKernelTypes gives their memory back, some ten megabytes, once all is loaded.
// What is loaded after that reads them again.
func ForgetKernelTypes() {
	kernelTypes.Lock()
	defer kernelTypes.Unlock()
	kernelTypes.cache = nil
}

// ReadKernelTypesBeside begins to read them, for what is loaded soon.
func ReadKernelTypesBeside() {
	types := KernelTypes()
	go func() { _, _ = types.Kernel() }() // who needs them gets the error
}

// HasKernelTypes reports whether they are read, or being read.
func HasKernelTypes() bool {
	kernelTypes.Lock()
	defer kernelTypes.Unlock()
	return kernelTypes.cache != nil
}

// Load loads a specification, with maps that were made before.
func Load(spec *ebpf.CollectionSpec, made map[string]*ebpf.Map) (*ebpf.Collection, error) {
	return newCollection(spec, ebpf.CollectionOptions{MapReplacements: made, Cache: KernelTypes()})
}

// LoadAlone loads a specification at any time: with the kernel's types if they are still
// there, and without keeping them if they are not.
func LoadAlone(spec *ebpf.CollectionSpec) (*ebpf.Collection, error) {
	kernelTypes.Lock()
	types := kernelTypes.cache
	kernelTypes.Unlock()
	return newCollection(spec, ebpf.CollectionOptions{Cache: types})
}
