package cli

import (
	"slices"
	"testing"

	urfave "github.com/urfave/cli/v2"
)

func TestCompletionKnowsCommandsFlagsAndValues(t *testing.T) {
	app := newApp("ebpfprof")
	for _, c := range []struct {
		words []string
		want  []string
	}{
		{nil, []string{"schema", "completion"}},
		{[]string{"--v"}, []string{"--version"}},
		{[]string{"completion", "f"}, []string{"fish"}},
		{[]string{"schema", "span", "memo"}, []string{"memory"}},
	} {
		if got := complete(app, c.words); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.words, got, c.want)
		}
	}
}

func TestCompletionOffersWhatACommandAdds(t *testing.T) {
	CompleteValues("flavour", func() []string { return []string{"sweet"} })
	t.Cleanup(func() { delete(values, "flavour") })
	app := newApp("ebpfprof", &urfave.Command{Name: "taste", Flags: []urfave.Flag{&urfave.StringFlag{Name: "flavour",
		Aliases: []string{"f"}}}})
	if got := complete(app, []string{"taste", "-f", ""}); !slices.Equal(got, []string{"sweet"}) {
		t.Errorf("%q", got)
	}
}
