package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/demangle"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

const (
	// mostNear names are shown, of at most mostCompared that are compared, each of so many bytes.
	mostNear     = 3
	mostCompared = 20_000
	longestName  = 200
)

// functionNames are the names in a file that a name may have been meant for: those with its last part, or else all, as
// people read them.
func functionNames(e *elf.File, symbol string) (names []string) {
	for _, s := range e.FunctionsWithPrefixes([]string{""}) {
		if name := s.Name; len(name) <= longestName && !strings.Contains(name, ".") {
			names = append(names, name)
		}
	}
	if len(names) > mostCompared {
		part := symbol[strings.LastIndexByte(symbol, ':')+1:]
		part = part[:min(len(part), 6)]
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, part) })
		names = names[:min(len(names), mostCompared)]
	}
	if strings.HasPrefix(symbol, "_Z") {
		return names
	}
	for i, name := range names {
		names[i] = demangle.Short(name)
	}
	return names
}

// Nearest are the names that are most like a name, the best first: those that differ in a third of its letters or less, or
// contain it.
func Nearest(name string, names []string) []string {
	type like struct {
		name     string
		distance int
	}
	name = name[:min(len(name), longestName)]
	var near []like
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		d := distance(name, n)
		if strings.Contains(n, name) || strings.Contains(name, n) && len(n) > len(name)/2 {
			d = min(d, len(name)/3)
		}
		if d <= max(len(name)/3, 1) {
			near = append(near, like{n, d})
		}
	}
	slices.SortStableFunc(near, func(a, b like) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(len(a.name), len(b.name)))
	})
	var best []string
	for _, n := range near[:min(len(near), mostNear)] {
		best = append(best, n.name)
	}
	return best
}

// distance is how many letters must be put in, taken out or changed to make one name of the other.
func distance(a, b string) int {
	if d := len(a) - len(b); max(d, -d) > max(len(a), len(b))/2 {
		return max(len(a), len(b)) // far, and not worth the look
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := above
			if a[i] != b[j] {
				change++
			}
			above = row[j+1]
			row[j+1] = min(change, above+1, row[j]+1)
		}
	}
	return row[len(b)]
}
