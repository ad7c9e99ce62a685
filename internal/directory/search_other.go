//go:build !linux

package directory

import "golang.org/x/sys/unix"

const search = unix.O_RDONLY
