// Package catalog says what to probe, as data: for each runtime the functions, how their
// symbols are found, what to capture of a call and what a captured value means. A new runtime
// is a new table; neither the kernel programs nor the decoder change.
//
// Each runtime's table is a package of its own (cuda, hip, levelzero, neuron, opencl, pjrt;
// nccl and c10d for collectives; torch), and none knows of the others, but for HIP, which is
// made after CUDA. They are written in the terms of package spec, which is all that is needed
// by who plans a function, captures it or decodes what it told. This package puts the tables
// together, for who asks what there is.
//
// The package is no part of the public API: it may change with any version.
package catalog

import (
	"slices"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/c10d"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/cuda"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/hip"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/levelzero"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/nccl"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/neuron"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/opencl"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/pjrt"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/torch"
)

// Groups lists every group, in the order in which they are shown.
func Groups() []spec.Group {
	return slices.Concat(torch.Groups(), c10d.Groups(), opencl.Groups(), levelzero.Groups(), neuron.Groups(),
		cuda.Groups(), hip.Groups(), nccl.Groups(), pjrt.Groups())
}
