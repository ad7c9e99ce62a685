package cli

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/output"
)

func runApp(command *urfave.Command, arguments ...string) (string, error) {
	var out strings.Builder
	app := &urfave.App{
		Name: "ebpfprof", Commands: []*urfave.Command{command},
		Writer: &out, ErrWriter: io.Discard, ExitErrHandler: func(*urfave.Context, error) {},
	}
	err := app.Run(append([]string{"ebpfprof"}, arguments...))
	return out.String(), err
}

func TestSchemaNamesEveryColumn(t *testing.T) {
	for _, format := range []string{"table", "markdown", "json"} {
		out, err := runApp(SchemaCommand(), "schema", "--format", format)
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range output.Schema() {
			for _, c := range append(table.Columns, output.Column{Name: table.Name}) {
				if !strings.Contains(out, c.Name) {
					t.Errorf("%s: no %s.%s", format, table.Name, c.Name)
				}
			}
		}
	}
}

func TestSchemaOfOneTable(t *testing.T) {
	out, err := runApp(SchemaCommand(), "schema", "flow", "--format", "json")
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct{ Tables []output.Table }
	if err := json.Unmarshal([]byte(out), &parsed); err != nil {
		t.Fatal(err)
	}
	if len(parsed.Tables) != 1 || parsed.Tables[0].Name != "flow" || len(parsed.Tables[0].Columns) == 0 {
		t.Errorf("%+v", parsed)
	}
}

func TestSchemaMistakesAreUsageErrors(t *testing.T) {
	for _, arguments := range [][]string{{"schema", "spam"}, {"schema", "--format", "xml"}, {"schema", "span", "--nope"}} {
		_, err := runApp(SchemaCommand(), arguments...)
		var exit urfave.ExitCoder
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", arguments, err)
		}
	}
}

func TestFlagsMayFollowArguments(t *testing.T) {
	for _, c := range []struct {
		line string
		want string
	}{
		{"a b", "a|b| "},
		{"--format x a b", "a|b|x "},
		{"a --format x b", "a|b|x "},
		{"a b --format=x --on", "a|b|x on"},
		{"a --on - --format x", "a|-|x on"},
		{"a --format x -- --on", "a|--on|x "},
		{"a -- --format x", "a|--format|x| "},
		{"a --on -- b", "a|b| on"},
		{"a '--_comment'", "a|--\tcomment| "},
		{"a --format=x_y", "a|x\ty "},
	} {
		var got []string
		command := &urfave.Command{
			Name:  "c",
			Flags: []urfave.Flag{&urfave.StringFlag{Name: "format"}, &urfave.BoolFlag{Name: "on"}},
			Action: func(c *urfave.Context) error {
				arguments, err := Interspersed(c)
				on := ""
				if c.Bool("on") {
					on = "on"
				}
				got = append(arguments, c.String("format")+" "+on)
				return err
			},
		}
		var arguments []string
		for _, word := range strings.Fields(c.line) {
			arguments = append(arguments, strings.ReplaceAll(strings.Trim(word, "'"), "_", "\t"))
		}
		if _, err := runApp(command, append([]string{"c"}, arguments...)...); err != nil {
			t.Errorf("%s: %v", c.line, err)
		}
		if want := strings.Split(c.want, "|"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", c.line, got, want)
		}
	}
}
