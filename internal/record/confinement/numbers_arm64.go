package confinement

import "golang.org/x/sys/unix"

const (
	architecture = unix.AUDIT_ARCH_AARCH64
	otherNumbers = 0x40000000 // there are none
)

var deniedHere = []uint32{unix.SYS_KEXEC_FILE_LOAD}
