package bpf

import "testing"

// TestTheKernelsTypesAreReadOnce: each reading takes tens of milliseconds of a start.
func TestTheKernelsTypesAreReadOnce(t *testing.T) {
	defer ForgetKernelTypes()
	types := KernelTypes()
	if KernelTypes() != types {
		t.Error("the second who asks reads them again")
	}
	ForgetKernelTypes()
	if KernelTypes() == types {
		t.Error("they are still there once all is loaded")
	}
}
