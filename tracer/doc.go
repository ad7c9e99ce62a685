// Package tracer records what running processes do: Open finds what there is to probe in
// the libraries that they map, puts the probes in and takes stock; Run follows the
// processes and hands what the kernel tells to a Sink, as rows (package event), until its
// context ends or every process has.
//
// A Session puts the packages below together, and owns little beside them and its
// options: what the level takes of a call (taking.go), the samples (sampling.go), what is
// told when all is over (losses.go, stats.go). Each of the others owns one thing:
//
//	job        the traced processes: how they begin, what they map, how they end
//	probes     which probes are planned on which file, and which of them are in
//	probetable the index by which a record names its probe
//	plan, site where a probe goes, and what it captures
//	budget     which probes may be in when, and what a row stands for then
//	kernel     the programs, their maps and links
//	sampler    the programs that take stacks
//	decode     the rings, and what becomes of a record
//	rows       what has been made of records until it is written
//	accel, waits, stacks  what calls into accelerator runtimes, collectives and stacks mean
//
// Two goroutines do the work. The manager's is that of Run: job, probes and budget belong
// to it. The decoder's reads the rings: decode, rows, accel, waits, and what of stacks
// names frames. They meet in probetable, in mapped and in the decoder's inbox, each of
// which says so. What reads the machine's counters, makes unwind tables, plans files or
// takes links out are goroutines of their own, which hand over what they have made.
package tracer
