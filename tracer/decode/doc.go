// Package decode turns the records of the kernel's rings into rows. All of it belongs to
// one goroutine, which Decoder.Run is: it looks into the ring of calls, then into that of
// samples, and hands the rows (package rows) to the sink. What others want of it they ask
// through Decoder.Do.
//
// A record of a call goes through calls: call takes its bytes apart, span or event makes
// the row, detail gives meaning to its captured words; what it tells of others (edges,
// shapes, live memory, collectives, runtimes) is kept by the type of that name. A record
// of a sample goes through samples.
//
// The package is no part of the public API: it may change with any version.
package decode
