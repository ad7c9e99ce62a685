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

// Load loads a specification, with maps that were made before.
func Load(spec *ebpf.CollectionSpec, made map[string]*ebpf.Map) (*ebpf.Collection, error) {
	return ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: made, Cache: KernelTypes()})
}
