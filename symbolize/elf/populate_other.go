//go:build !linux

package elf

// populate: only Linux maps pages ahead on request.
func populate(start, length uintptr) {}
