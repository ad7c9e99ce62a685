// Package cufunction finds the name of a CUDA kernel in the memory behind its
// handle. A CUfunction or CUkernel is a pointer to a structure of libcuda that
// nobody documents; one of its first words points to the kernel's name. Where
// that word is, is learnt from handles whose names are known from the calls that
// made them, for each build of libcuda; until then it is looked for where it is
// known to have been, and what is found must look like a name.
//
// Nothing read here is trusted: a handle may be garbage, the structure gone, the
// string half overwritten. Each way to fail has its name.
//
// The package is no part of the public API: it may change with any version.
package cufunction
