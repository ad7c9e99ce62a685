package cpython

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is a CPython release.
type Version struct {
	Major, Minor, Patch int
	FreeThreaded        bool
}

// ParseVersion reads "3.11.7", "3.13.0rc2", or just "3.10" (patch 0).
func ParseVersion(s string) (Version, error) {
	var v Version
	for i, part := range strings.SplitN(s, ".", 3) {
		digits := len(part) - len(strings.TrimLeft(part, "0123456789"))
		n, err := strconv.Atoi(part[:digits])
		if err != nil || i < 2 && digits != len(part) {
			return Version{}, fmt.Errorf("parsing the Python version %q: no number where one belongs", s)
		}
		*[]*int{&v.Major, &v.Minor, &v.Patch}[i] = n
	}
	if !strings.Contains(s, ".") {
		return Version{}, fmt.Errorf("parsing the Python version %q: no minor version", s)
	}
	return v, nil
}

func (v Version) String() string {
	s := fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
	if v.FreeThreaded {
		s += "t"
	}
	return s
}
