// Package progress tells how far a training job has come, without a probe of its own:
// by the training steps and the autograd nodes that the records tell of (StepClock,
// NodeClock), by the nodes that PyTorch numbers in the memory of its threads
// (NodeCounter), and by the time in which the job has a core (JobClock). A Timeline is
// a process's time, cut into training steps and what lies between them.
//
// The package is no part of the public API: it may change with any version.
package progress

import "github.com/ebpfprof/ebpfprof/symbolize/elf"

// Library is a file that the job maps. It is comparable.
type Library interface {
	File() *elf.File
	// Bias is what the loader added to the file's addresses in a process, if that maps it.
	Bias(pid int) (uint64, bool)
}

// Threads asks the kernel for the threads of a process.
type Threads interface {
	// Pointers are their thread pointers, by tid.
	Pointers(pid int) (map[int32]uint64, error)
	Close()
}
