package profile

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/symbolize"
)

// WriteFolded writes one line per distinct path, root first, and its time in
// microseconds: what flamegraph.pl, speedscope and inferno read. The lines are
// sorted, so that two profiles can be compared.
func (p Profile) WriteFolded(w io.Writer) error {
	sums := map[string]int64{}
	escaped := map[*function]string{}
	for i := range p {
		s := &p[i]
		parts := make([]string, 0, len(s.Frames)+2)
		for _, title := range []string{s.Group, cutLabel(s.Cut)} {
			if title != "" {
				parts = append(parts, printable.Text(symbolize.FoldLabel(title)))
			}
		}
		for j := len(s.Frames) - 1; j >= 0; j-- {
			f := s.Frames[j].function
			label, ok := escaped[f]
			if !ok {
				label = printable.Text(symbolize.FoldLabel(f.label))
				escaped[f] = label
			}
			parts = append(parts, label)
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

func cutLabel(cut string) string {
	if cut == "" {
		return ""
	}
	return CutLabel + cut + "]"
}
