// Package kernel is what the tracer has in the kernel: the programs of calls and of
// processes, their maps and rings, and the links of probes. It loads them in the way that
// this kernel can (package features), puts programs at places of files and takes them out
// again with the least harm to the job, and measures what a hit costs here.
//
// It owns every file descriptor of the kernel but those of samples (package sampler) and of
// unwind tables (package unwinding), and the names of the losses that the programs count.
// Which probes there are, and when they are in, others say.
//
// The package is no part of the public API: it may change with any version.
package kernel
