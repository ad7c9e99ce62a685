//go:build linux && !reader

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/record/capture"
	"github.com/ebpfprof/ebpfprof/internal/record/demo"
	"github.com/ebpfprof/ebpfprof/internal/record/recorder"
)

//go:generate go test -run TestTheManualIsTheHelp . -update

var update = flag.Bool("update", false, "write docs/commands.md")

// TestTheManualIsTheHelp: docs/commands.md has each command's help, with the notes of
// directory manual below it.
func TestTheManualIsTheHelp(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "commands.md")
	m := manual{used: map[string]bool{}}
	text, err := m.write()
	if err != nil {
		t.Fatal(err)
	}
	notes, err := filepath.Glob("manual/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, note := range notes {
		if !m.used[note] {
			t.Errorf("%s is the note of no command", note)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != text {
		t.Error("docs/commands.md differs from the help: run go generate ./cmd/ebpfprof")
	}
}

// manual is docs/commands.md in the making.
type manual struct {
	strings.Builder
	used map[string]bool // the notes that stand in it
	err  error
}

func (m *manual) write() (string, error) {
	m.WriteString("<!-- Written by go generate ./cmd/ebpfprof from the help and cmd/ebpfprof/manual: do not edit. -->\n\n# Commands\n\n")
	m.note("intro")
	commands := append(capture.Commands(recorder.Reading{}, append(answers(), demo.Command())...), cli.SchemaCommand(),
		cli.CompletionCommand())
	m.WriteString("| command | |\n| --- | --- |\n")
	for _, c := range commands {
		fmt.Fprintf(m, "| [%s](#%s) | %s |\n", c.Name, c.Name, cell(c.Usage))
	}
	m.WriteString("\n")
	for _, c := range commands {
		m.command(c, "")
	}
	m.note("end")
	return strings.TrimRight(m.String(), "\n") + "\n", m.err
}

// command writes a command's section, and those of its subcommands after it.
func (m *manual) command(c *urfave.Command, parent string) {
	name := strings.TrimSpace(parent + " " + c.Name)
	fmt.Fprintf(m, "%s %s\n\n", "##"+strings.Repeat("#", strings.Count(name, " ")), name)
	usage := c.UsageText
	if usage == "" {
		usage = strings.TrimSpace("ebpfprof " + name + " [options] " + c.ArgsUsage)
	}
	fmt.Fprintf(m, "%s.\n\n```\n%s\n```\n\n", strings.ToUpper(c.Usage[:1])+c.Usage[1:], usage)
	m.description(c.Description)
	m.note(strings.ReplaceAll(name, " ", "-"))
	m.options(c.Flags)
	for _, sub := range c.Subcommands {
		m.command(sub, name)
	}
}

// description writes paragraphs as they are, and indented lines as a block of code.
func (m *manual) description(text string) {
	text = strings.ReplaceAll(text, cli.ExitCodeHelp, "")
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		switch {
		case strings.TrimSpace(paragraph) == "":
		case strings.HasPrefix(paragraph, " "):
			lines := strings.Split(strings.TrimRight(paragraph, "\n"), "\n")
			for i := range lines {
				lines[i] = strings.TrimPrefix(lines[i], "   ")
			}
			fmt.Fprintf(m, "```\n%s\n```\n\n", strings.Join(lines, "\n"))
		default:
			fmt.Fprintf(m, "%s\n\n", escaped(strings.TrimSpace(paragraph)))
		}
	}
}

func (m *manual) options(flags []urfave.Flag) {
	flags = slices.DeleteFunc(slices.Clone(flags), func(f urfave.Flag) bool {
		v, ok := f.(urfave.VisibleFlag)
		return ok && !v.IsVisible() || f.Names()[0] == "help"
	})
	if len(flags) == 0 {
		return
	}
	m.WriteString("| option | |\n| --- | --- |\n")
	for _, f := range flags {
		names, meaning, _ := strings.Cut(f.String(), "\t")
		if name, _, repeated := strings.Cut(names, " [ "); repeated {
			names = name + " …"
		}
		// What the library says of flags that have no default.
		for _, nothing := range []string{"(default: false)", "(default: 0)"} {
			meaning = strings.TrimSuffix(meaning, nothing)
		}
		fmt.Fprintf(m, "| `%s` | %s |\n", strings.TrimSpace(names), cell(strings.TrimSpace(meaning)))
	}
	m.WriteString("\n")
}

// note writes the note of that name, if there is one.
func (m *manual) note(name string) {
	path := filepath.Join("manual", name+".md")
	text, err := os.ReadFile(path)
	switch {
	case os.IsNotExist(err):
		return
	case err != nil:
		m.err = err
	}
	m.used[path] = true
	fmt.Fprintf(m, "%s\n\n", strings.TrimSpace(string(text)))
}

func cell(text string) string { return strings.ReplaceAll(escaped(text), "|", `\|`) }

// escaped keeps Markdown from taking what is meant as it stands for its own.
func escaped(text string) string {
	return strings.NewReplacer("_", `\_`, "*", `\*`, "<", `\<`).Replace(text)
}
