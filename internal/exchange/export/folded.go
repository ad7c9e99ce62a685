package export

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/model/profile"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/symbolize"
)

var folded = Format{
	Name: "folded", Kind: Sums, Help: "folded stacks with microseconds, for flamegraph.pl and inferno",
	write: func(s *stream, w io.Writer) error { return WriteFolded(w, s.sums.profile) },
}

// WriteFolded writes one line per distinct path, root first, and its time in
// microseconds: what flamegraph.pl, speedscope and inferno read. The lines are
// sorted, so that two profiles can be compared.
func WriteFolded(w io.Writer, p profile.Profile) error {
	sums := map[string]int64{}
	escaped := map[string]string{}
	escape := func(label string) string {
		safe, ok := escaped[label]
		if !ok {
			safe = printable.Text(symbolize.FoldLabel(label))
			escaped[label] = safe
		}
		return safe
	}
	for i := range p {
		s := &p[i]
		parts := make([]string, 0, len(s.Frames)+2)
		for _, title := range s.Titles() {
			parts = append(parts, escape(title))
		}
		for _, f := range slices.Backward(s.Frames) {
			parts = append(parts, escape(f.Label()))
		}
		sums[strings.Join(parts, ";")] += s.WeightNS
	}
	lines := make([]string, 0, len(sums))
	for path, weight := range sums {
		if us := (weight + 500) / 1000; us > 0 && path != "" {
			lines = append(lines, fmt.Sprintf("%s %d\n", path, us))
		}
	}
	slices.Sort(lines)
	out := bufio.NewWriter(w)
	for _, line := range lines {
		out.WriteString(line)
	}
	return out.Flush()
}
