// Package tensor knows PyTorch's tensors from outside: which operators have shapes
// worth reading (operators.go), where a call of one has its arguments (signature.go),
// where a TensorImpl has its sizes, strides, type and device (layout.go), and what the
// kernel's copy of them says (reader.go). bpf/tensors.h does the copying.
//
// What is copied is the job's memory: sizes are believed only where they agree with
// the number of elements, and a layout only where the storage is large enough for what
// it says (trust.go).
//
// The package is no part of the public API: it may change with any version.
package tensor
