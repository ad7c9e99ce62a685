// Package sampler looks at the threads of the traced processes: on the CPU by a clock, off
// it when a long wait ends. It covers every thread from its first instruction on, because
// it watches CPUs and not threads.
//
// It owns the programs of samples, their ring and their links; the tables of processes and
// of stacks they share with those of package kernel, beside which they are loaded.
//
// The package is no part of the public API: it may change with any version.
package sampler
