package timeline

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

const listedParts = 15

// WriteText writes the verdict, where the path is over the step, and its parts.
func (p *CriticalPath) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s\n\n", printable.Text(p.Verdict()))
	p.writeSums(out)
	if !p.Whole {
		fmt.Fprintln(out, "  the step lies between slices of the recording: most of its calls are missing")
	}
	if p.DroppedEdges > 0 {
		fmt.Fprintf(out, "  %s contradict the measured times and are left out\n", counted(p.DroppedEdges, "edge"))
	}
	for _, r := range p.Ranks {
		fmt.Fprintf(out, "  rank %d: %s of the path; it comes to %s last, and waits there for others %s\n", r.Rank, milliseconds(r.ExposedMS),
			counted(r.Last, "collective"), milliseconds(r.WaitsMS))
	}
	if p.most != nil {
		fmt.Fprint(out, "\n  with the least time that the work on devices can have taken:")
	}
	p.writePicture(out)
	if p.most != nil {
		fmt.Fprint(out, "  with the most:")
		p.most.writePicture(out)
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.SuppressTrailingSpaces()
	t.AppendHeader(table.Row{"exposed", "hidden", "%", "where", "what"})
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 1, Align: text.AlignRight}, {Number: 2, Align: text.AlignRight},
		{Number: 3, Align: text.AlignRight}})
	for _, part := range p.Parts[:min(len(p.Parts), listedParts)] {
		t.AppendRow(part.row(p))
	}
	fmt.Fprintln(out, t.Render())
	if left := len(p.Parts) - listedParts; left > 0 {
		fmt.Fprintf(out, "%d more with less; --json has all\n", left)
	}
	if p.most != nil {
		fmt.Fprintln(out, "ranges are between both ends; what several pieces of work share evenly may be more of one and less of another")
	}
	return out.Flush()
}

// writeSums writes what the path is made of, in one line or two.
func (p *CriticalPath) writeSums(out io.Writer) {
	most := p
	if p.most != nil {
		most = p.most
	}
	fmt.Fprintf(out, "  host %s, device %s, between calls %s; hidden on the device %s (graph: %s)\n", ranging(p.HostMS, most.HostMS),
		ranging(p.DeviceMS, most.DeviceMS), ranging(p.BetweenMS, most.BetweenMS), ranging(p.HiddenDeviceMS, most.HiddenDeviceMS), p.Method)
	if most.DeviceMS > 0 {
		b, c := p.BoundBy, most.BoundBy
		fmt.Fprintf(out, "  bound by: CPU %s, kernels %s, communication %s, copies %s, gaps between work %s, launch latency %s\n",
			ranging(b.CPU, c.CPU), ranging(b.Compute, c.Compute), ranging(b.Communication, c.Communication), ranging(b.Copies, c.Copies),
			ranging(b.KernelKernel+b.StreamWait, c.KernelKernel+c.StreamWait), ranging(b.KernelLaunch, c.KernelLaunch))
	}
}

func (p PathPart) row(path *CriticalPath) table.Row {
	exposed, hidden, percent := milliseconds(p.ExposedMS), milliseconds(p.HiddenMS), fmt.Sprintf("%.1f", p.Percent)
	if b := p.PartBounds; b != nil {
		exposed, hidden = ranging(b.ExposedLoMS, b.ExposedHiMS), ranging(b.HiddenLoMS, b.HiddenHiMS)
		if low, high := fmt.Sprintf("%.1f", b.PercentLo), fmt.Sprintf("%.1f", b.PercentHi); low != high {
			percent = low + " to " + high
		}
	}
	return table.Row{exposed, hidden, percent, strings.TrimSpace(p.Where + " " + p.Layer), shorten(printable.Text(p.Name), 70)}
}

// ranging is two ends of a time, one where they read alike.
func ranging(a, b float64) string {
	low, high := milliseconds(min(a, b)), milliseconds(max(a, b))
	if low == high {
		return low
	}
	return low + " to " + high
}

func shorten(s string, columns int) string {
	if r := []rune(s); len(r) > columns {
		return string(r[:columns-1]) + "…"
	}
	return s
}

const pictureWidth = 100

// writePicture shows over the step's time where the path was.
func (p *CriticalPath) writePicture(out io.Writer) {
	if p.PathMS <= 0 {
		return
	}
	lanes := []string{"host", "device", "between"}
	share := map[string][]float64{}
	for _, l := range lanes {
		share[l] = make([]float64, pictureWidth)
	}
	cell := p.PathMS / pictureWidth
	for _, s := range p.Segments {
		for i := int(s.FromMS / cell); i < pictureWidth && float64(i)*cell < s.FromMS+s.MS; i++ {
			from, to := max(s.FromMS, float64(i)*cell), min(s.FromMS+s.MS, float64(i+1)*cell)
			share[s.Where][i] += max(to-from, 0) / cell
		}
	}
	fmt.Fprintln(out)
	for _, l := range lanes {
		var line strings.Builder
		for _, v := range share[l] {
			line.WriteRune([]rune(" ░▒▓█")[min(int(math.Round(v*4)), 4)])
		}
		if strings.TrimSpace(line.String()) != "" {
			fmt.Fprintf(out, "  %-8s│%s│\n", l, line.String())
		}
	}
	fmt.Fprintln(out)
}
