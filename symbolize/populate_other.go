//go:build !linux

package symbolize

// populate: only Linux maps pages ahead on request.
func populate(start, length uintptr) {}
