package recorder

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// The verdict takes the place of the table of operators; where there is none, the table stays.
func TestTheVerdictStandsInPlaceOfTheTable(t *testing.T) {
	s := &summary{Operators: []operatorSummary{{Name: "aten::mm", Layer: "op", Count: 3, Timed: 3}}}
	for name, c := range map[string]struct {
		answer Answer
		want   string
		table  bool
	}{
		"a verdict": {func(_ context.Context, _ string, w io.Writer) error { io.WriteString(w, "it waits\n"); return nil },
			"it waits", false},
		"a dataset that breaks": {func(context.Context, string, io.Writer) error { return errors.New("no rows") }, "", true},
		"the agent":             {nil, "", true},
	} {
		var out bytes.Buffer
		r := &recorder{reading: Reading{Answer: c.answer}}
		s.print(&out, r.printAnswer(&out, "dataset"))
		if text := out.String(); !strings.HasPrefix(strings.TrimSpace(text), c.want) || strings.Contains(text, "aten::mm") != c.table {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}
