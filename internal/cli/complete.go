package cli

import (
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/output"
)

// values are what a flag can be given, by its name, or by those of command and flag ("query format").
var values = map[string]func() []string{}

// arguments are what a command takes besides flags.
var arguments = map[string]func() []string{
	"completion": func() []string { return []string{"bash", "zsh", "fish"} },
	"schema":     tableNames,
}

// CompleteValues lets a command name the values of a flag: of any command, or after a command's name and a space of that
// command alone.
func CompleteValues(flag string, of func() []string) { values[flag] = of }

// Complete lists what the last of the words may become in a binary that has these
// commands beside its own.
func Complete(name string, words []string, commands ...*urfave.Command) []string {
	return complete(newApp(name, commands...), words)
}

// complete lists what the last of the words may become; nothing where a file
// name or any word may follow.
func complete(app *urfave.App, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	before, current := words[:len(words)-1], words[len(words)-1]
	if slices.Contains(before, "--") {
		return nil
	}
	command, flags := commandOf(app, before)
	previous := ""
	if len(before) > 0 {
		previous = before[len(before)-1]
	}
	switch {
	case takesValue(flags, previous):
		name := longName(flags, previous)
		of, ok := values[name]
		if command != nil && values[command.Name+" "+name] != nil {
			of, ok = values[command.Name+" "+name], true
		}
		if ok {
			return matching(of(), current)
		}
		return nil
	case strings.HasPrefix(current, "-"):
		return matching(flagNames(flags), current)
	case command == nil:
		return matching(commandNames(app), current)
	}
	if of, ok := arguments[command.Name]; ok {
		return matching(of(), current)
	}
	return nil
}

// commandOf is the command that the words name, with the flags it takes.
func commandOf(app *urfave.App, words []string) (*urfave.Command, []urfave.Flag) {
	for _, word := range words {
		if c := app.Command(word); c != nil {
			return c, c.Flags
		}
	}
	return nil, []urfave.Flag{urfave.HelpFlag, urfave.VersionFlag}
}

func matching(candidates []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(candidates), func(c string) bool { return !strings.HasPrefix(c, prefix) })
}

func commandNames(app *urfave.App) (names []string) {
	for _, c := range app.Commands {
		names = append(names, c.Name)
	}
	return names
}

// flagNames are the long names of the flags that are not hidden.
func flagNames(flags []urfave.Flag) (names []string) {
	for _, f := range flags {
		if v, ok := f.(urfave.VisibleFlag); ok && v.IsVisible() {
			names = append(names, "--"+f.Names()[0])
		}
	}
	if !slices.Contains(names, "--help") {
		names = append(names, "--help")
	}
	return names
}

func flagNamed(flags []urfave.Flag, word string) urfave.Flag {
	if !strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
		return nil
	}
	for _, f := range flags {
		if isNamed(f, strings.TrimLeft(word, "-")) {
			return f
		}
	}
	return nil
}

func takesValue(flags []urfave.Flag, word string) bool {
	f, ok := flagNamed(flags, word).(urfave.DocGenerationFlag)
	return ok && f.TakesValue()
}

func longName(flags []urfave.Flag, word string) string { return flagNamed(flags, word).Names()[0] }

func tableNames() (names []string) {
	for _, t := range output.Schema() {
		names = append(names, t.Name)
	}
	return names
}
