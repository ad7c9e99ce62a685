package results

import (
	"encoding/json"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/numbers"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/pipeline"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/store"
)

// Rows are an outcome as a store keeps it.
func Rows(session, run string, o *pipeline.Outcome, s *store.Store) (store.Run, []store.Number) {
	c := o.Case
	row := store.Run{
		Session: session, ID: run, Name: c.Name, Base: c.Base, System: c.System, Partition: c.Partition, Environ: c.Environ,
		Repeat: int32(o.Repeat), Attempt: int32(o.Attempt), Begin: o.Begin.UnixNano(), End: o.End.UnixNano(),
		Command: strings.Join(c.Command, " "),
		Result:  string(o.Result), Stage: o.Stage, Reason: o.Reason,
		Stages: text(o.Stages), Inventory: text(o.Inventory), Parameter: text(c.Parameters), Periods: text(o.Periods),
	}
	if o.ExitCode != nil {
		row.ExitCode = new(int32(*o.ExitCode))
	}
	if o.Recording != "" {
		row.Recording = s.Relative(o.Recording)
	}
	var all []store.Number
	for _, n := range o.Numbers {
		out := store.Number{Session: session, Run: run, Name: n.Name, Value: n.Value, Lo: n.Lo, Hi: n.Hi, Of: int64(n.Of), From: n.From,
			Unit: n.Unit, Why: n.Why}
		if c, ok := o.Checked[n.Name]; ok {
			out.Ref, out.Lower, out.Upper, out.Result = new(c.Reference.Value), c.Reference.Lower, c.Reference.Upper, string(c.Result)
		}
		all = append(all, out)
	}
	for name, c := range o.Checked {
		if _, ok := numbers.Find(o.Numbers, name); !ok { // a reference of what was never measured is missed, and seen
			all = append(all, store.Number{Session: session, Run: run, Name: name, Why: "there is no number of that name",
				Ref: new(c.Reference.Value), Lower: c.Reference.Lower, Upper: c.Reference.Upper, Result: string(c.Result)})
		}
	}
	return row, all
}

func text(v any) string {
	out, _ := json.Marshal(v)
	return string(out)
}
