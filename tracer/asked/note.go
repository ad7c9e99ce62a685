package asked

import (
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// Note reads PROVIDER:NAME[(NAME:TYPE,…)]. The arguments without a name are called arg1, arg2, …, and are numbers as the
// probe's own description says.
func Note(text string) (f spec.Function, err error) {
	asked := &spec.Asked{Text: text}
	head, arguments, err := cut(text)
	if err != nil {
		return f, err
	}
	provider, name, ok := strings.Cut(head, ":")
	if asked.Note = (spec.Note{Provider: provider, Name: name}); !ok || provider == "" || name == "" || strings.ContainsAny(head, "/ \t>") {
		return f, fmt.Errorf("write PROVIDER:NAME, such as python:gc__start, or PROVIDER:NAME(generation:int)")
	}
	for _, argument := range arguments {
		if strings.TrimSpace(argument) == skipped {
			asked.Arguments = append(asked.Arguments, spec.Argument{})
			continue
		}
		a, pointed, err := named(argument, asked.Arguments)
		if err != nil {
			return f, err
		}
		if pointed {
			return f, fmt.Errorf("argument %s: what a pointer points to is read of functions only: write ptr", a.Name)
		}
		asked.Arguments = append(asked.Arguments, a)
	}
	return spec.Function{
		Layer: spec.LayerUser, Category: "usdt", Label: asked.Note.String(), Action: spec.Instant, End: spec.NoEnd, Asked: asked,
	}, nil
}
