// Package pythons finds the CPythons of a machine, for tests and benchmarks
// that ask each of them the same question.
package pythons

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Python is one installed CPython.
type Python struct {
	Path    string // of the program
	Version string // "3.11.7"
	Minor   int    // 11
	// Include is where its headers are, "" without.
	Include string
}

const describe = `import sys, sysconfig, os
include = sysconfig.get_paths()["include"]
assert sys.implementation.name == "cpython"
print("%d.%d.%d" % sys.version_info[:3], sys.version_info[1], include if os.path.exists(include + "/Python.h") else "-")`

// Installed lists the CPython 3.8 and later of the system, of pyenv, and of
// scripts/python-3.14.sh, and those that $EBPFPROF_PYTHONS names
// (programs, separated by colons).
var Installed = sync.OnceValue(func() []Python {
	candidates := filepath.SplitList(os.Getenv("EBPFPROF_PYTHONS"))
	candidates = append(candidates, "/usr/bin/python3")
	if home, err := os.UserHomeDir(); err == nil {
		more, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions/3.*/bin/python3"))
		candidates = append(candidates, more...)
		candidates = append(candidates, filepath.Join(cacheDirectory(home), "python-3.14/python3.14"))
	}
	var found []Python
	for _, path := range candidates {
		if p, err := Describe(path); err == nil && p.Minor >= 8 {
			found = append(found, p)
		}
	}
	return found
})

func cacheDirectory(home string) string {
	if cache := os.Getenv("EBPFPROF_CACHE"); cache != "" {
		return cache
	}
	return filepath.Join(home, ".cache", "ebpfprof")
}

// Describe asks one interpreter.
func Describe(path string) (Python, error) {
	out, err := exec.Command(path, "-c", describe).Output()
	if err != nil {
		return Python{}, fmt.Errorf("asking %s what it is: %w", path, err)
	}
	fields := strings.Fields(string(out))
	minor, err := strconv.Atoi(fields[1])
	if err != nil {
		return Python{}, fmt.Errorf("asking %s what it is: %w", path, err)
	}
	p := Python{Path: path, Version: fields[0], Minor: minor}
	if fields[2] != "-" {
		p.Include = fields[2]
	}
	return p, nil
}

// Name tells interpreters apart in the names of tests.
func (p Python) Name() string {
	if strings.HasPrefix(p.Path, "/usr/") {
		return p.Version + "-system"
	}
	return p.Version
}
