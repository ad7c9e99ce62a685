package site

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// library is a real shared object and what the planners ask about it.
type library struct {
	*elf.File
	text   map[string]elf.Symbol // functions by name
	starts map[uint64]bool
	cold   map[string]elf.Symbol
}

const (
	debianTorch = "/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13"
	wheelTorch  = "~/.cache/ebpfprof/torch-venv/lib/python3*/site-packages/torch/lib/libtorch_cpu.so"
)

// opened keeps the libraries of the test run: the large ones take a while.
var opened = map[string]*library{}

// openLibrary opens the file that matches the pattern, or skips.
func openLibrary(tb testing.TB, pattern string) *library {
	tb.Helper()
	l := opened[pattern]
	if l == nil {
		e, err := elf.Open(libraryPath(pattern))
		if err != nil {
			tb.Skipf("%s is not installed on this machine", pattern)
		}
		l = newLibrary(e)
		opened[pattern] = l
	}
	return l
}

// libraryPath expands the pattern; it returns "" where nothing matches.
func libraryPath(pattern string) string {
	names, _ := filepath.Glob(strings.Replace(pattern, "~", os.Getenv("HOME"), 1))
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

func newLibrary(e *elf.File) *library {
	l := &library{File: e, text: map[string]elf.Symbol{}, starts: map[uint64]bool{}, cold: map[string]elf.Symbol{}}
	for _, s := range e.FunctionsWithPrefixes([]string{""}) {
		if base, ok := strings.CutSuffix(s.Name, ".cold"); ok {
			l.cold[base] = s
		} else if s.Size > 0 {
			l.text[s.Name] = s
			l.starts[s.Address] = true
		}
	}
	return l
}

func (l *library) function(name string) Function {
	s := l.text[name]
	f := Function{Arch: AMD64, Address: s.Address, Code: l.CodeAt(s.Address, s.Size),
		FunctionStart: func(a uint64) bool {
			_, stub := l.PLTTarget(a)
			return stub || l.starts[a]
		},
		Part: func(a uint64) (Fragment, bool) {
			start, end, ok := l.Extent(a)
			return Fragment{start, l.CodeAt(start, end-start)}, ok
		},
		NoReturn: l.NoReturn,
		Leaf: func(a uint64) bool {
			n, ok := l.PLTTarget(a)
			return ok && LeafName(n)
		},
		Read: func(a uint64, b []byte) bool { return copy(b, l.CodeAt(a, uint64(len(b)))) == len(b) },
	}
	if c, ok := l.cold[name]; ok {
		f.Cold = []Fragment{{c.Address, l.CodeAt(c.Address, c.Size)}}
	}
	return f
}

// match lists the functions whose name contains all parts.
func (l *library) match(parts ...string) []string {
	var names []string
next:
	for n := range l.text {
		for _, p := range parts {
			if !strings.Contains(n, p) {
				continue next
			}
		}
		names = append(names, n)
	}
	return names
}
