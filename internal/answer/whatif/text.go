package whatif

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Rows and columns of pictures; a line below them counts what is left out.
const (
	listedWorkers = 10
	heatRows      = 32
	heatColumns   = 64
	barWidth      = 30
)

// Verdict is the answer in one sentence.
func (a *Analysis) Verdict() string {
	if a.S < leastSlowdown {
		return fmt.Sprintf("The workers are even: with all alike a step would take %s instead of %s (S %.3f, below %.2f).",
			seconds(a.IdealS), seconds(a.ReplayedS), a.S, leastSlowdown)
	}
	return fmt.Sprintf("A step takes %.2f times as long as with all workers alike (%s instead of %s): %s.",
		a.S, seconds(a.ReplayedS), seconds(a.IdealS), a.reason())
}

func (a *Analysis) reason() string {
	switch a.Cause {
	case SlowWorker:
		w := a.Workers[0]
		if a.Replaced > 1 {
			return fmt.Sprintf("%d slow workers, first rank %d (dp_rank %d, stage %d), explain %s of the loss",
				a.Replaced, w.Rank, w.DPRank, w.Stage, percent(*a.MW))
		}
		return fmt.Sprintf("one slow worker, rank %d (dp_rank %d, stage %d), explains %s of the loss",
			w.Rank, w.DPRank, w.Stage, percent(*a.MW))
	case SequenceImbalance:
		return fmt.Sprintf("micro-batches differ in length (forward and backward times correlate at %.2f)", *a.Correlation)
	case SlowStage:
		return fmt.Sprintf("the last stage explains %s of the loss", percent(*a.MS))
	}
	return "no single worker, last stage or imbalance of sequences explains half of it"
}

// WriteText writes the verdict, the tables and their pictures.
func (a *Analysis) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s\n\n", a.Verdict())
	a.writeSummary(out)
	a.writeHeat(out)
	a.writeWorkers(out)
	bars(out, "stage", "if only this stage were as measured", a.Stages, func(s StageSlowdown) (string, float64) {
		return fmt.Sprint(s.Stage), s.S
	})
	bars(out, "operation", "if only this type were as measured", a.OpTypes, func(s TypeSlowdown) (string, float64) {
		return s.OpType, s.S
	})
	a.writeSteps(out)
	return out.Flush()
}

func (a *Analysis) writeSummary(out io.Writer) {
	rows := [][2]string{
		{"S, slowdown of the job", fmt.Sprintf("%.4f", a.S)},
		{fmt.Sprintf("M_W, explained by the slowest %s", plural(a.Replaced, "worker")), share(a.MW, "not asked: S < 1.03")},
		{"M_S, explained by the last stage", share(a.MS, "no pipeline")},
		{"correlation of forward and backward", number(a.Correlation, "too few micro-batches")},
		{"cause", string(a.Cause)},
		{"step as measured", seconds(a.MeasuredS)},
		{"step as replayed", seconds(a.ReplayedS) + " (without gaps between operations)"},
		{"step with all alike", seconds(a.IdealS)},
	}
	t := newTable()
	for _, r := range rows {
		t.AppendRow(table.Row{r[0], r[1]})
	}
	fmt.Fprintf(out, "%s\n\n", t.Render())
}

func (a *Analysis) writeWorkers(out io.Writer) {
	t := newTable("rank", "dp_rank", "stage", "S_w")
	for _, w := range a.Workers[:min(len(a.Workers), listedWorkers)] {
		t.AppendRow(table.Row{w.Rank, w.DPRank, w.Stage, fmt.Sprintf("%.4f", w.S)})
	}
	fmt.Fprintf(out, "slowest workers (the rank is the first of the worker's tensor group)\n%s\n", t.Render())
	if left := len(a.Workers) - listedWorkers; left > 0 {
		fmt.Fprintf(out, "%d more, with less; --json has all\n", left)
	}
	fmt.Fprintln(out)
}

// shades go from an even worker to one that loses as much as the worst.
var shades = []rune("·░▒▓█")

// writeHeat shows each worker's S_w, a row a dp_rank, a column a stage.
func (a *Analysis) writeHeat(out io.Writer) {
	worst := a.Workers[0].S
	byPlace := map[[2]int]float64{}
	dps, stages := 0, 0
	for _, w := range a.Workers {
		byPlace[[2]int{w.DPRank, w.Stage}] = w.S
		dps, stages = max(dps, w.DPRank+1), max(stages, w.Stage+1)
	}
	shown := a.heatRows(dps)
	fmt.Fprintf(out, "S_w of each worker: · is even, █ is %.2f\n", max(worst, 1))
	fmt.Fprintf(out, "  dp_rank  stage 0…%d\n", stages-1)
	for _, dp := range shown {
		var line strings.Builder
		for stage := range min(stages, heatColumns) {
			shade := shades[shadeOf(byPlace[[2]int{dp, stage}], worst)]
			line.WriteString(strings.Repeat(string(shade), 2) + " ")
		}
		fmt.Fprintf(out, "  %7d  %s\n", dp, strings.TrimRight(line.String(), " "))
	}
	if left := dps - len(shown); left > 0 {
		fmt.Fprintf(out, "  %d dp_ranks with less are not shown\n", left)
	}
	if left := stages - heatColumns; left > 0 {
		fmt.Fprintf(out, "  %d stages are not shown\n", left)
	}
	fmt.Fprintln(out)
}

// heatRows are the dp_ranks that lose most, in their order.
func (a *Analysis) heatRows(dps int) (shown []int) {
	for _, d := range a.DPRanks[:min(dps, heatRows, len(a.DPRanks))] {
		shown = append(shown, d.DPRank)
	}
	slices.Sort(shown)
	return shown
}

// shadeOf is linear between 1 and the worst. A job of even workers has no dark
// spot: below leastSlowdown nothing is shaded.
func shadeOf(s, worst float64) int {
	if s < leastSlowdown || worst <= 1 {
		return 0
	}
	n := int(math.Ceil((s - 1) / (worst - 1) * float64(len(shades)-1)))
	return max(0, min(n, len(shades)-1))
}

// bars draws how much each costs alone, the longest bar for the most.
func bars[T any](out io.Writer, kind, title string, all []T, of func(T) (string, float64)) {
	most := 0.0
	for _, one := range all {
		_, s := of(one)
		most = max(most, s-1)
	}
	t := newTable(kind, "S", "")
	for _, one := range all {
		name, s := of(one)
		n := 0
		if most > 0 {
			n = int(math.Round(max(s-1, 0) / most * barWidth))
		}
		t.AppendRow(table.Row{name, fmt.Sprintf("%.4f", s), strings.Repeat("█", n)})
	}
	fmt.Fprintf(out, "%s\n%s\n\n", title, t.Render())
}

func (a *Analysis) writeSteps(out io.Writer) {
	slowest := slices.MaxFunc(a.Steps, func(x, y Step) int { return cmp.Compare(x.S, y.S) })
	fastest := slices.MinFunc(a.Steps, func(x, y Step) int { return cmp.Compare(x.S, y.S) })
	fmt.Fprintf(out, "%s; S from %.3f (step %d) to %.3f (step %d)\n",
		plural(len(a.Steps), "step"), fastest.S, fastest.Step, slowest.S, slowest.Step)
}

func newTable(header ...any) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.SuppressTrailingSpaces()
	if len(header) > 0 {
		t.AppendHeader(header)
	}
	var right []table.ColumnConfig
	for i, h := range header {
		if h != "operation" && h != "" {
			right = append(right, table.ColumnConfig{Number: i + 1, Align: text.AlignRight})
		}
	}
	t.SetColumnConfigs(right)
	return t
}

func seconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.1f ms", s*1e3)
	}
	return fmt.Sprintf("%.2f s", s)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", share*100) }

func share(s *float64, otherwise string) string {
	if s == nil {
		return otherwise
	}
	return fmt.Sprintf("%.1f %%", *s*100)
}

func number(n *float64, otherwise string) string {
	if n == nil {
		return otherwise
	}
	return fmt.Sprintf("%.3f", *n)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
