package recorder

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/ebpfprof/ebpfprof/internal/redact"
	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/budget"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
)

// topOperators is how many lines the summary's table has.
const topOperators = 10

// summary is what a recording ends with.
type summary struct {
	Dataset       string            `json:"dataset"`
	DurationNS    int64             `json:"duration_ns"`
	Spans         uint64            `json:"spans"`
	Allocations   uint64            `json:"allocator_events"`
	Flows         uint64            `json:"flows"`
	Samples       uint64            `json:"samples"`
	Stacks        stackSummary      `json:"stacks"`
	Short         shortSummary      `json:"short_processes"`
	PeakLiveBytes int64             `json:"peak_live_bytes,omitempty"` // not in slices, which see a part
	Cost          *costSummary      `json:"cost"`                      // null where it was not measured
	Lost          map[string]uint64 `json:"lost"`
	Bytes         int64             `json:"bytes"`
	Sampled       bool              `json:"in_slices"`
	Estimates     []string          `json:"estimates"` // fields that are estimated, [] where all was counted
	Operators     []operatorSummary `json:"operators"`
	JobExitCode   *int              `json:"job_exit_code,omitempty"` // 128 and more: ended by a signal
	JobPID        int               `json:"job_pid,omitempty"`       // it still runs
	jobState      string
}

// costSummary is what the recording cost its job, in percent of the job's time.
type costSummary struct {
	All     float64 `json:"all_percent"`
	Probes  float64 `json:"probes_percent"`
	InOut   float64 `json:"in_out_percent"`
	Waits   float64 `json:"waits_percent"`
	IO      float64 `json:"io_percent"`
	Samples float64 `json:"samples_percent"`
	Starts  float64 `json:"starts_percent"`
	Own     float64 `json:"own_percent"`
	// Without is what the job pays as well and nobody measured, [] where that is nothing.
	Without []string `json:"without"`
}

// withoutCUPTI is what the library of --device-times cupti costs: CUPTI's work at each call is in the job's own threads, and
// nothing tells it from theirs.
const withoutCUPTI = "CUPTI's own work in it"

func summarizeCost(c *budget.Cost) *costSummary {
	if c == nil || !c.Whole {
		return nil
	}
	p := &c.Parts
	return &costSummary{100 * p.Sum(), 100 * p.Probes, 100 * p.InOut, 100 * p.Waits, 100 * p.IO, 100 * p.Samples, 100 * p.Starts, 100 * p.Own,
		[]string{}}
}

// text names the parts, those that are nothing left out.
func (c *costSummary) text() string {
	var parts []string
	for _, p := range []struct {
		name    string
		percent float64
	}{
		{"probes", c.Probes}, {"putting them in and out", c.InOut}, {"switches", c.Waits}, {"reads and writes", c.IO}, {"samples", c.Samples},
		{"process starts", c.Starts}, {"our own CPU", c.Own},
	} {
		if p.percent >= 0.05 {
			parts = append(parts, fmt.Sprintf("%s %.1f", p.name, p.percent))
		}
	}
	text := fmt.Sprintf("cost %.1f %% of the job's time", c.All)
	if len(c.Without) > 0 {
		text += fmt.Sprintf(", without %s, which is not measured", strings.Join(c.Without, " and "))
	}
	if len(parts) == 0 {
		return text
	}
	return text + ": " + strings.Join(parts, ", ")
}

// shortSummary is of the processes that ended before they were looked at.
type shortSummary struct {
	Count    int64 `json:"count"`
	Commands int   `json:"commands"`
	WallNS   int64 `json:"wall_ns"`
	CPUNS    int64 `json:"cpu_ns"`
}

// stackSummary counts the samples and spans with a stack.
type stackSummary struct {
	Complete   uint64            `json:"complete"`
	Incomplete map[string]uint64 `json:"incomplete"` // by the stack's status
	Unresolved uint64            `json:"unresolved"`
	Unnamed    map[string]uint64 `json:"unnamed"` // Python frames without a name, by reason
	Memoised   memoSummary       `json:"memoised"`
}

// memoSummary counts the stacks of calls that were looked up instead of walked.
type memoSummary struct {
	Found      uint64 `json:"found"`
	Walked     uint64 `json:"walked"`
	Unfit      uint64 `json:"unfit"`      // of the walked: they cannot be looked up
	Verified   uint64 `json:"verified"`   // of the found: walked to compare
	Mismatched uint64 `json:"mismatched"` // of those: another stack
}

type operatorSummary struct {
	Name       string  `json:"name"`
	Layer      string  `json:"layer"`
	Count      float64 `json:"count"`
	Timed      float64 `json:"timed"` // of them, those whose end was seen
	DurationNS float64 `json:"duration_ns"`
	Threw      uint64  `json:"threw"`
}

func summarize(stats tracer.Stats, dataset *output.Dataset, took time.Duration) *summary {
	s := &summary{
		Dataset: dataset.Dir(), DurationNS: took.Nanoseconds(), Spans: stats.Spans, Allocations: stats.Memory, Flows: stats.Flows,
		Samples: stats.Samples, Stacks: stackSummary{stats.Stacks.Complete, stats.Stacks.Incomplete, stats.Stacks.Unresolved, stats.Unnamed,
			memoSummary(stats.Memo)},
		Cost: summarizeCost(stats.Cost), Lost: stats.Lost, Sampled: stats.InSlices, Short: shortSummary{stats.Short.Count, stats.Short.Commands,
			stats.Short.WallNS, stats.Short.CPUNS},
	}
	s.Estimates = []string{}
	if s.Sampled {
		s.Estimates = append(s.Estimates, "operators.count", "operators.timed", "operators.duration_ns")
	} else {
		s.PeakLiveBytes = stats.PeakLiveBytes
	}
	if s.Lost == nil {
		s.Lost = map[string]uint64{}
	}
	s.Bytes = written(dataset)
	for name, o := range stats.Operators {
		s.Operators = append(s.Operators, operatorSummary{Name: name, Layer: o.Layer, Count: o.Count, Timed: o.Timed, DurationNS: o.DurationNS,
			Threw: o.Threw})
	}
	sort.Slice(s.Operators, func(i, j int) bool {
		a, b := &s.Operators[i], &s.Operators[j]
		if a.DurationNS != b.DurationNS {
			return a.DurationNS > b.DurationNS
		}
		return a.Name < b.Name
	})
	return s
}

// redact does to the names of scopes what the dataset's had done to them.
func (s *summary) redact() {
	for i := range s.Operators {
		s.Operators[i].Name = redact.Text(s.Operators[i].Name)
	}
}

func (s *summary) printJSON(w io.Writer) {
	e := json.NewEncoder(printable.JSON(w))
	e.SetIndent("", "  ")
	e.Encode(s)
}

// print writes the summary; answered says that the verdict stands above it, in place of the table of operators.
func (s *summary) print(w io.Writer, answered bool) {
	if !answered {
		s.printTable(w)
	}
	fmt.Fprintf(w, "\n%s spans, %s allocator events, %s edges between calls in %.1f s; %s on disk\n",
		amount.Count(s.Spans), amount.Count(s.Allocations), amount.Count(s.Flows), float64(s.DurationNS)/1e9, amount.Bytes(s.Bytes))
	s.printStacks(w)
	if s.Short.Count > 0 {
		fmt.Fprintf(w, "%s short %s of %s, %s, %s of it on a CPU\n", amount.Count(uint64(s.Short.Count)), plural(s.Short.Count, "process",
			"processes"),
			fmt.Sprintf("%d %s", s.Short.Commands, plural(int64(s.Short.Commands), "command", "commands")), seconds(s.Short.WallNS),
			seconds(s.Short.CPUNS))
	}
	if s.Sampled && !answered {
		fmt.Fprintln(w, "recorded in slices to keep within the budget: calls and times in the table are estimates, each row scaled by its "+
			"weight (--example estimates: how far off they may be);")
		fmt.Fprintln(w, "spans, allocator events, edges and what threw are the rows that were recorded; calls between the slices have none")
	}
	if s.Cost != nil {
		fmt.Fprintln(w, s.Cost.text())
	}
	if s.PeakLiveBytes > 0 {
		fmt.Fprintf(w, "peak of live tensor bytes allocated while recording: %s\n", amount.Bytes(s.PeakLiveBytes))
	}
	s.printLosses(w)
	fmt.Fprint(w, s.jobText())
	fmt.Fprintf(w, "\ndataset: %s\nnext:\n", s.Dataset)
	fmt.Fprintf(w, "  ebpfprof report %s\n", quote(s.Dataset))
	fmt.Fprintf(w, "  ebpfprof query %s --example operators\n", quote(s.Dataset))
	if s.Sampled {
		fmt.Fprintf(w, "  ebpfprof query %s --example estimates\n", quote(s.Dataset))
	}
	if s.Samples > 0 {
		fmt.Fprintf(w, "  ebpfprof stacks %s\n", quote(s.Dataset))
	}
	fmt.Fprintf(w, "  ebpfprof query %s 'SELECT * FROM warning'\n", quote(s.Dataset))
	fmt.Fprintf(w, "  cd %s && duckdb -init %s\n", quote(s.Dataset), output.ViewsFile)
}

// jobText says what became of the command of `run`, "" for attach.
func (s *summary) jobText() string {
	switch {
	case s.JobPID != 0:
		return fmt.Sprintf("the command still runs, as pid %d\n", s.JobPID)
	case s.JobExitCode == nil:
		return ""
	}
	return fmt.Sprintf("the command ended: %s\n", s.jobState)
}

func plural(n int64, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

func seconds(ns int64) string { return fmt.Sprintf("%.1f s", float64(ns)/1e9) }

// nameWidth is how much of an operator's name the table shows.
const nameWidth = 60

func (s *summary) printTable(w io.Writer) {
	if len(s.Operators) == 0 {
		return
	}
	top := s.Operators[:min(len(s.Operators), topOperators)]
	header := []any{"layer", "name", "calls", "total ms", "mean µs"}
	if s.Sampled {
		header = []any{"layer", "name", "≈ calls", "≈ total ms", "≈ mean µs"}
	}
	threw := slices.ContainsFunc(top, func(o operatorSummary) bool { return o.Threw > 0 })
	if threw {
		header = append(header, "threw")
	}
	t := terminal.PlainTable(header...)
	for _, o := range top {
		row := table.Row{
			o.Layer, text.Snip(printable.Text(o.Name), nameWidth, "…"), amount.Count(uint64(o.Count + 0.5)), fmt.Sprintf("%.1f", o.DurationNS/1e6),
			fmt.Sprintf("%.1f", o.DurationNS/max(o.Timed, 1)/1e3),
		}
		if threw {
			row = append(row, amount.Count(o.Threw))
		}
		t.AppendRow(row)
	}
	terminal.RightAlign(t, 3, len(header))
	terminal.Render(w, t)
	if more := len(s.Operators) - topOperators; more > 0 {
		fmt.Fprintf(w, "… and %d more names; times include what is called inside\n", more)
	}
	s.printOpen(w)
}

// mostOpen are the names shown of calls without an end.
const mostOpen = 3

// printOpen says which calls count and have no time: where a slice ends, or the recording,
// a job is in the middle of some.
func (s *summary) printOpen(w io.Writer) {
	var calls float64
	var names []string
	for _, o := range s.Operators {
		if open := o.Count - o.Timed; open > 0.5 {
			calls, names = calls+open, append(names, text.Snip(printable.Text(o.Name), nameWidth, "…"))
		}
	}
	if len(names) == 0 {
		return
	}
	if more := len(names) - mostOpen; more > 0 {
		names = append(names[:mostOpen], fmt.Sprintf("%d more names", more))
	}
	fmt.Fprintf(w, "calls whose end was not seen: %s (%s); they are counted, and in no total or mean\n",
		amount.Count(uint64(calls+0.5)), strings.Join(names, ", "))
}

// printStacks says how many stacks reach down to their thread's start, and why
// the others do not.
func (s *summary) printStacks(w io.Writer) {
	all := s.Stacks.Complete + s.Stacks.Unresolved
	for _, n := range s.Stacks.Incomplete {
		all += n
	}
	if s.Samples+all == 0 {
		return
	}
	fmt.Fprintf(w, "%s samples", amount.Count(s.Samples))
	if all > 0 {
		fmt.Fprintf(w, "; %s stacks, %.1f %% complete", amount.Count(all), 100*float64(s.Stacks.Complete)/float64(all))
	}
	fmt.Fprintln(w)
	for _, status := range slices.Sorted(maps.Keys(s.Stacks.Incomplete)) {
		fmt.Fprintf(w, "  incomplete: %s %s\n", amount.Count(s.Stacks.Incomplete[status]), status)
	}
	if s.Stacks.Unresolved > 0 {
		fmt.Fprintf(w, "  lost: %s whose frames did not come\n", amount.Count(s.Stacks.Unresolved))
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Stacks.Unnamed)) {
		fmt.Fprintf(w, "  Python frames without a name: %s %s\n", amount.Count(s.Stacks.Unnamed[reason]), reason)
	}
	if m := s.Stacks.Memoised; m.Found > 0 {
		fmt.Fprintf(w, "  memoised: %s; %s of them walked to compare, %s differed\n", amount.Count(m.Found), amount.Count(m.Verified),
			amount.Count(m.Mismatched))
	}
}

func (s *summary) printLosses(w io.Writer) {
	if len(s.Lost) == 0 {
		if s.Sampled {
			fmt.Fprintln(w, "no row was lost of what the slices saw")
		} else {
			fmt.Fprintln(w, "no row was lost")
		}
		return
	}
	reasons := make([]string, 0, len(s.Lost))
	for reason := range s.Lost {
		reasons = append(reasons, reason)
	}
	sort.Strings(reasons)
	for _, reason := range reasons {
		fmt.Fprintf(w, "lost: %s rows, %s: %s\n", amount.Count(s.Lost[reason]), reason, lossAdvice(reason))
	}
}

func lossAdvice(reason string) string {
	for _, l := range kernel.Losses {
		if l.Name == reason {
			return l.Detail
		}
	}
	return ""
}

// quote makes a path safe to paste into a shell.
func quote(path string) string {
	if path == filepath.Clean(path) {
		return shellWord(path)
	}
	return inQuotes(path)
}

// shellWord is an argument as a shell takes it.
func shellWord(s string) string {
	if s == "" || needsQuotes(s) {
		return inQuotes(s)
	}
	return s
}

func inQuotes(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func needsQuotes(s string) bool {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/.-_=,:+@%", r)) {
			return true
		}
	}
	return false
}
