package kernel

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testkernel"
)

// A list of threads is loaded when a recording has begun, or later: it takes the kernel's
// types that are there, and keeps none for the rest of it.
func TestAListOfThreadsKeepsNoTypes(t *testing.T) {
	testkernel.Need(t)
	bpf.ForgetKernelTypes()
	list, err := NewTaskList()
	if err != nil {
		t.Fatal(err)
	}
	list.Close()
	if bpf.HasKernelTypes() {
		t.Error("the kernel's types are kept")
	}
}
