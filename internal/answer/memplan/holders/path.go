// Package holders says who holds memory: by line of the user's code, by module,
// by operator and by phase, at one instant and over the steps. It owns how a block's
// phase is guessed; what is the user's code is internal/model/usercode's.
package holders

import (
	"fmt"
	"path"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/model/usercode"
)

// Frame is one frame of a call stack.
type Frame struct {
	Kind     string // python, native, kernel or op, as in table stack
	Function string
	File     string
	Line     int64
}

// Path is a call stack, leaf first.
type Path []Frame

// Span is what was running around an allocation or a free.
type Span struct {
	Parent int64
	Layer  string // scope, op, autograd, …
	Name   string
	// Path is the stack of the call, and Forward the operator whose backward node
	// this is; 0 where they were not recorded.
	Path, Forward int64
}

// isPython reports whether a frame is one of Python code.
func (f Frame) isPython() bool {
	return f.Kind == "python" || strings.HasSuffix(f.File, ".py")
}

func (f Frame) isUsers() bool { return f.isPython() && usercode.Is(f.File) }

// Place is the innermost frame of the user's code: else of Python, else none.
func (p Path) Place() (Frame, bool) {
	for _, f := range p {
		if f.isUsers() {
			return f, true
		}
	}
	for _, f := range p {
		if f.isPython() {
			return f, true
		}
	}
	return Frame{}, false
}

// Line names a place for people: file:line (function).
func (p Path) Line() string {
	f, is := p.Place()
	if !is {
		return ""
	}
	if f.Function == "" {
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return fmt.Sprintf("%s:%d (%s)", f.File, f.Line, f.Function)
}

// Module names the modules whose forward was running, the outermost first.
func (p Path) Module() string {
	var names []string
	for i := len(p) - 1; i >= 0; i-- {
		class, is := strings.CutSuffix(p[i].Function, ".forward")
		if is && p[i].isPython() && (len(names) == 0 || names[len(names)-1] != class) {
			names = append(names, class)
		}
	}
	return strings.Join(names, "/")
}

// within reports whether a Python frame's file and function have these parts.
func (p Path) within(file, function string) bool {
	for _, f := range p {
		if f.isPython() && strings.Contains(f.File, file) && strings.Contains(f.Function, function) {
			return true
		}
	}
	return false
}

// Short is a line without the directories of its file.
func Short(line string) string {
	file, rest, is := strings.Cut(line, ":")
	if !is {
		return line
	}
	return path.Base(file) + ":" + rest
}
