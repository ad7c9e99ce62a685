//go:build linux && cgo

package addressspace

/*
#include <sys/resource.h>

extern struct rlimit ebpfprof_address_space;
extern int ebpfprof_address_space_raised;
*/
import "C"

import "golang.org/x/sys/unix"

func original() (unix.Rlimit, bool) {
	was := C.ebpfprof_address_space
	return unix.Rlimit{Cur: uint64(was.rlim_cur), Max: uint64(was.rlim_max)}, C.ebpfprof_address_space_raised != 0
}
