package plan

import (
	"bytes"
	"slices"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// maxConstants is how much of a library is searched for a text: those that are generated
// are small.
const maxConstants = 4 << 20

// holds reports whether a text is among a library's constants.
func holds(e *elf.File, text string) bool {
	return text == "" || slices.ContainsFunc(e.ReadOnlyData(), func(data []byte) bool {
		return bytes.Contains(data[:min(len(data), maxConstants)], []byte(text))
	})
}
