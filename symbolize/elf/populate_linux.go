package elf

import "golang.org/x/sys/unix"

// populate maps the pages of a range for reading (Linux 5.14); where it can't,
// they come with the first access.
func populate(start, length uintptr) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, length, unix.MADV_POPULATE_READ)
}
