// Package addressspace lifts a limit on the address space (ulimit -v) from ebpfprof itself.
//
// Go's runtime reserves more address space than such limits leave, and ends with a traceback before main: no Go code
// can say why. A constructor in C runs earlier. It raises the soft limit and, where it may, the hard one, and keeps what
// the limits were, so that a command that ebpfprof starts gets them back. Where they cannot be raised and leave too
// little, it prints a sentence and ends the process. A build without cgo has no constructor.
package addressspace

import "golang.org/x/sys/unix"

// Limits are the limits that the process was started with, if they were raised.
func Limits() (limits unix.Rlimit, raised bool) { return original() }
