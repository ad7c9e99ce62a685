//go:build !libbpf

package bpf

import "github.com/cilium/ebpf"

// newCollection loads a specification.
func newCollection(spec *ebpf.CollectionSpec, options ebpf.CollectionOptions) (*ebpf.Collection, error) {
	return ebpf.NewCollectionWithOptions(spec, options)
}
