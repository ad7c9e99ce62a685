package pythons

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed offsetof/offsetof.c
var offsetofSource []byte

// ErrNoHeaders: the interpreter was installed without its C headers.
var ErrNoHeaders = errors.New("no headers are installed")

// Offsets compiles offsetof.c against the interpreter's headers, with more of the compiler's
// flags, and runs it: the offsets by name, without those that the version has not.
func Offsets(p Python, flags ...string) (map[string]int, error) {
	if p.Include == "" {
		return nil, fmt.Errorf("measuring the offsets of %s: %w", p.Path, ErrNoHeaders)
	}
	dir, err := os.MkdirTemp("", "offsetof")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	source, program := filepath.Join(dir, "offsetof.c"), filepath.Join(dir, "offsetof")
	if err := os.WriteFile(source, offsetofSource, 0o600); err != nil {
		return nil, err
	}
	gcc := exec.Command("gcc", "-w", "-DPy_BUILD_CORE", "-I", p.Include, "-I", filepath.Join(p.Include, "internal"),
		"-I", filepath.Dir(p.Include), // where Debian's pyconfig.h finds the architecture's
		"-o", program, source)
	gcc.Args = append(gcc.Args, flags...)
	if out, err := gcc.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling offsetof.c for %s: %w: %s", p.Path, err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		return nil, fmt.Errorf("running offsetof for %s: %w", p.Path, err)
	}
	offsets := map[string]int{}
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(value); err == nil {
			offsets[name] = n
		}
	}
	return offsets, nil
}
