// Package libbpf loads and attaches the BPF objects by upstream's libbpf, so that tests can
// hold the tracer's own loader against it: what both count of one job has to be equal. It has
// code with the build tag libbpf only, and needs cgo and what scripts/libbpf.sh builds.
//
// Tables are made as ever, since a loader fills them from the same specification: what libbpf
// does a second time is to read the object, to lay out its functions, to relocate maps, fields,
// kernel functions and variables, to load the programs, and to attach probes.
package libbpf
