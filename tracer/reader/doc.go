// Package reader has what belongs to a job opened and read by processes of ours that may wait
// for ever. A job decides how long an answer takes: it may serve its own files (FUSE), keep the lock of
// its memory, or map a page that never comes, and whoever waits for such a thing in the kernel can
// not even be killed. So the tracer asks a reader, waits for as long as it has patience, and
// leaves a late reader behind. That one has no descriptor of the tracer's: what is in the
// kernel goes when the tracer ends, however long the reader stays.
//
// A reader is the same program, started anew: it runs what the importer of this package registers
// with Serve, and never main.
//
// The package is no part of the public API: it may change with any version.
package reader
