package elf

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Range is a part of a file.
type Range struct{ From, To int64 }

// maxHoles is how many holes of a file are looked at: no tool makes so many.
const maxHoles = 1 << 14

// HolesOf lists the parts of a file that were never written. Beyond maxHoles all is one.
func HolesOf(file *os.File) (holes []Range) {
	end, err := file.Seek(0, 2)
	for at := int64(0); err == nil && at < end; {
		start, err := unix.Seek(int(file.Fd()), at, unix.SEEK_HOLE)
		if err != nil || start >= end { // a file system that knows no holes has one at the end
			return holes
		}
		data, err := unix.Seek(int(file.Fd()), start, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) || len(holes) >= maxHoles {
			data, err = end, nil
		}
		if err != nil {
			return holes
		}
		holes = append(holes, Range{start, data})
		at = data
	}
	return holes
}

// holesOf reports of a part of a file whether less than half of it was ever written.
func holesOf(file *os.File) func(from, to int64) bool {
	var (
		holes []Range
		known bool
	)
	return func(from, to int64) bool {
		if !known {
			holes, known = HolesOf(file), true
		}
		return mostlyIn(holes, from, to)
	}
}

func mostlyIn(holes []Range, from, to int64) bool {
	missing := int64(0)
	for _, h := range holes {
		missing += max(0, min(h.To, to)-max(h.From, from))
	}
	return missing > (to-from)/2
}
