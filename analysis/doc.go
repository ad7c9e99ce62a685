// Package analysis is for analyses that are not part of ebpfprof: contexts and metrics of
// a dataset in, findings out.
//
// A Rule is asked about a Recording: it sees the steps of the training loop, the tree of
// contexts (Python line, operator, runtime call, kernel) with its metrics, and all tables
// in SQL. What it accuses it names by the ids of spans; how much shorter a step would be
// without them follows from replaying the steps, with the interval, the noise and the
// severity that the rules of `ebpfprof findings` have.
//
// Datasets alone are read, recorded or imported: it takes no root and no Linux, but cgo,
// as DuckDB does. What a running job does, row by row as it happens, goes to an
// event.Sink of package tracer.
package analysis
