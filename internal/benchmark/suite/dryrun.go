package suite

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/numbers"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/pipeline"
)

// DryRun prints what each case would do, stage by stage.
func DryRun(w io.Writer, cases []*pipeline.Case, record []string) {
	for i, c := range cases {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s on %s\n", c.Name, c.SysEnv())
		if c.Dir != "" {
			fmt.Fprintf(w, "  in           %s\n", c.Dir)
		}
		for _, name := range slices.Sorted(maps.Keys(c.Env)) {
			fmt.Fprintf(w, "  environment  %s=%s\n", name, c.Env[name])
		}
		for _, line := range c.Setup {
			fmt.Fprintf(w, "  setup        %s\n", line)
		}
		for _, line := range c.Build {
			fmt.Fprintf(w, "  build        %s\n", line)
		}
		fmt.Fprintf(w, "  run          %s %s\n", strings.Join(record, " "), strings.Join(c.Command, " "))
		if c.TimeLimit > 0 {
			fmt.Fprintf(w, "               at most %v\n", c.TimeLimit)
		}
		for _, re := range c.Sanity.Find {
			fmt.Fprintf(w, "  sanity       the job prints %s\n", re)
		}
		for _, re := range c.Sanity.Absent {
			fmt.Fprintf(w, "  sanity       the job does not print %s\n", re)
		}
		for _, v := range c.Variables {
			how := "SQL " + v.SQL
			if v.Pattern != nil {
				how = "what matches " + v.Pattern.String()
			}
			fmt.Fprintf(w, "  performance  %s by %s\n", v.Name, how)
		}
		for _, name := range slices.Sorted(maps.Keys(c.References)) {
			lower, upper, _ := c.References[name].Bounds()
			fmt.Fprintf(w, "  performance  %s between %v and %v\n", name, lower, upper)
		}
		for _, line := range c.Cleanup {
			fmt.Fprintf(w, "  cleanup      %s\n", line)
		}
	}
}

// described is a case as --describe has it.
type described struct {
	*pipeline.Case
	SysEnv     string           `json:"sysenv"`
	TimeLimit  float64          `json:"time_limit_s,omitempty"`
	Stages     []string         `json:"stages"`
	Find       []string         `json:"sanity_find,omitempty"`
	Absent     []string         `json:"sanity_absent,omitempty"`
	Numbers    []string         `json:"numbers"`
	Variables  []string         `json:"variables,omitempty"`
	References map[string][]any `json:"references,omitempty"`
}

// Describe writes the cases as JSON.
func Describe(w io.Writer, cases []*pipeline.Case) error {
	all := make([]described, 0, len(cases))
	for _, c := range cases {
		d := described{Case: c, SysEnv: c.SysEnv(), TimeLimit: c.TimeLimit.Seconds(), Stages: pipeline.Stages(), References: map[string][]any{}}
		for _, re := range c.Sanity.Find {
			d.Find = append(d.Find, re.String())
		}
		for _, re := range c.Sanity.Absent {
			d.Absent = append(d.Absent, re.String())
		}
		for _, k := range numbers.Kinds() {
			d.Numbers = append(d.Numbers, k.Name)
		}
		for _, v := range c.Variables {
			d.Variables = append(d.Variables, v.Name)
		}
		for name, r := range c.References {
			d.References[name] = []any{r.Value, r.Lower, r.Upper, r.Unit, r.Expected}
		}
		all = append(all, d)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(all)
}
