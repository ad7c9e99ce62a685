// Package setup is what a run of bench is made of: how long and how often, the
// interpreters, the cores.
package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Settings are how long and how often.
type Settings struct {
	Rounds      int           // of every paired measurement
	Window      time.Duration // one side of a pair
	Long        time.Duration // of a pair whose tracer works in slices
	Attaches    int
	Spans       int // decoded
	Interpreted []Interpreter
	Only        []string // parts, all if empty
}

func (s *Settings) Wanted(part string) bool { return len(s.Only) == 0 || slices.Contains(s.Only, part) }

// Named is Wanted by its name.
func (s *Settings) Named(part string) bool { return slices.Contains(s.Only, part) }

// Interpreter is a Python with a PyTorch.
type Interpreter struct{ Name, Path string }

// CacheDirectory is where the setup scripts put what they fetch.
func CacheDirectory() string {
	if directory := os.Getenv("EBPFPROF_CACHE"); directory != "" {
		return directory
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".cache", "ebpfprof")
}

func Interpreters(only string) []Interpreter {
	var found []Interpreter
	for _, i := range []Interpreter{
		{"1.13 (Debian)", "/usr/bin/python3"},
		{"2.15 (PyPI)", filepath.Join(CacheDirectory(), "torch-venv/bin/python")},
	} {
		if _, err := os.Stat(i.Path); err != nil {
			Say("no PyTorch %s here: make deps torch", i.Name)
			continue
		}
		if strings.HasPrefix(i.Name, only) {
			found = append(found, i)
		}
	}
	return found
}

func Say(format string, values ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", values...)
}
