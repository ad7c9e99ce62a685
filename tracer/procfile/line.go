package procfile

import "strings"

// lineLimit is more than any of the files has that hold one value.
const lineLimit = 64 << 10

// Line is what a file of one line says, "" where it cannot be read.
func Line(path string) string {
	b, _ := Read(path, lineLimit)
	return strings.TrimSpace(string(b))
}
