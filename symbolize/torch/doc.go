// Package torch reads what is PyTorch's own in a library: which operator a function
// of at::_ops is, by the schemas that libtorch registers, and which class of
// autograd node a vtable belongs to.
//
// The package is no part of the public API: it may change with any version.
package torch
