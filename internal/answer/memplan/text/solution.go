package text

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/instance"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/solve"
	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

// solution is the JSON of `memory solve`.
type solution struct {
	LowerBound  int64      `json:"lower_bound"`
	Peak        int64      `json:"peak"`
	Gap         float64    `json:"gap"`
	Solver      string     `json:"solver"`
	Seconds     float64    `json:"seconds"`
	Feasible    *bool      `json:"feasible"`
	Optimal     bool       `json:"optimal"`
	Interrupted bool       `json:"interrupted"`
	Capacity    *int64     `json:"capacity"`
	NoReuse     int64      `json:"no_reuse"`
	Blocks      int        `json:"blocks"`
	Attempts    []attempt  `json:"attempts"`
	Offsets     []placedAt `json:"offsets"`
}

type attempt struct {
	Solver  string  `json:"solver"`
	Peak    *int64  `json:"peak"` // null where the solver did not finish
	Seconds float64 `json:"seconds"`
	Outcome string  `json:"outcome"`
}

type placedAt struct {
	ID     blockID `json:"id"`
	Offset int64   `json:"offset"`
}

// blockID is a number in JSON if it is one in the file, else a text.
type blockID string

func (id blockID) MarshalJSON() ([]byte, error) {
	if n, err := strconv.ParseInt(string(id), 10, 64); err == nil && strconv.FormatInt(n, 10) == string(id) {
		return []byte(id), nil
	}
	return json.Marshal(string(id))
}

func newSolution(problem solve.Problem, plan *solve.Plan, took time.Duration) solution {
	s := solution{
		LowerBound: plan.LowerBound, Peak: plan.Peak, Gap: plan.Gap(), Solver: plan.Solver, Seconds: took.Seconds(),
		Optimal: plan.Optimal, Interrupted: plan.Interrupted, NoReuse: solve.Total(problem.Blocks), Blocks: len(problem.Blocks),
		Attempts: []attempt{},
	}
	if problem.Capacity > 0 {
		fits := plan.Peak <= problem.Capacity
		s.Feasible, s.Capacity = &fits, &problem.Capacity
	}
	for _, a := range plan.Attempts {
		row := attempt{Solver: a.Solver, Seconds: a.Took.Seconds(), Outcome: a.Outcome}
		if a.Peak > 0 {
			row.Peak = &a.Peak
		}
		s.Attempts = append(s.Attempts, row)
	}
	return s
}

// SolutionJSON writes what `memory solve --json` does, the offsets as it goes: a million of
// them are no tree in memory.
func SolutionJSON(w io.Writer, problem solve.Problem, in *instance.Instance, plan *solve.Plan, took time.Duration) error {
	head, err := json.MarshalIndent(newSolution(problem, plan, took), "", "  ")
	if err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	out := bufio.NewWriterSize(w, 1<<20)
	before, _, _ := strings.Cut(string(head), `"offsets": null`)
	out.WriteString(before + `"offsets": [`)
	for i, id := range in.IDs {
		name, _ := blockID(id).MarshalJSON()
		if i > 0 {
			out.WriteString(",")
		}
		fmt.Fprintf(out, "\n    {\"id\": %s, \"offset\": %d}", name, plan.Offsets[i])
	}
	out.WriteString("\n  ]\n}\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}

// Solution prints what was found of an instance.
func Solution(w io.Writer, problem solve.Problem, in *instance.Instance, plan *solve.Plan, took time.Duration) error {
	fmt.Fprintf(w, "%d blocks, %s without reuse\n", len(in.Blocks), exactBytes(solve.Total(problem.Blocks)))
	if in.Empty > 0 {
		fmt.Fprintf(w, "%d of them live for no time and take no memory\n", in.Empty)
	}
	fmt.Fprintf(w, "peak %s by %s; lower bound %s, gap %.3f %%\n", exactBytes(plan.Peak), plan.Solver, exactBytes(plan.LowerBound),
		100*plan.Gap())
	switch {
	case plan.Optimal && plan.Peak > plan.LowerBound:
		fmt.Fprintln(w, "no plan has a lower peak: the search has shown it")
	case plan.Optimal:
		fmt.Fprintln(w, "no plan has a lower peak")
	case plan.Interrupted:
		fmt.Fprintf(w, "stopped after %s; a longer --time may find a lower peak\n", took.Round(time.Millisecond))
	}
	if problem.Capacity > 0 {
		verdict := "fits into"
		if plan.Peak > problem.Capacity {
			verdict = "no plan was found that fits into"
		}
		fmt.Fprintf(w, "%s %s\n", verdict, exactBytes(problem.Capacity))
	}
	fmt.Fprintln(w)
	t := terminal.PlainTable("solver", "peak", "over the bound", "time", "")
	terminal.RightAlign(t, 2, 4)
	for _, a := range plan.Attempts {
		if a.Peak == 0 {
			t.AppendRow([]any{a.Solver, "", "", a.Took.Round(time.Millisecond), a.Outcome})
			continue
		}
		note := ""
		if a.Outcome != "finished" {
			note = a.Outcome
		}
		t.AppendRow([]any{a.Solver, a.Peak, fmt.Sprintf("%.3f %%", 100*(float64(a.Peak)/float64(max(plan.LowerBound, 1))-1)),
			a.Took.Round(10 * time.Microsecond), note})
	}
	terminal.Render(w, t)
	_, err := fmt.Fprintf(w, "\n%s in all; --json has every block's offset\n", took.Round(time.Millisecond))
	return err
}

// exactBytes is a number of bytes, and what people call it.
func exactBytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%d B (%s)", n, amount.Bytes(n))
}
