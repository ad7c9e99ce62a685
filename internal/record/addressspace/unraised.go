//go:build !linux || !cgo

package addressspace

import "golang.org/x/sys/unix"

func original() (unix.Rlimit, bool) { return unix.Rlimit{}, false }
