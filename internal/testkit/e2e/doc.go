// Package e2e traces real jobs with the built ebpfprof and compares what the
// dataset says with what the jobs say of themselves (testdata/jobs/README.md)
// and with what torch.profiler counted in a second, identical run.
//
// It has tests only; what they stand on is in harness. They need root, a kernel that can be probed, Debian's
// PyTorch (make deps) and PyPI's (make torch); without, they skip and say so.
// Other jobs on the machine may map the same library: the tracer then attaches
// per process, and the first calls of a forked child may be missed. Tests that
// count those wait until they are alone.
package e2e
