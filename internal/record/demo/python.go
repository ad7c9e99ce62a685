package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// importing bounds the import of torch, which takes minutes from a cold network disk.
const importing = 3 * time.Minute

// interpreter is a Python that can import torch.
type interpreter struct {
	path           string
	version, torch string
}

// question is what a Python is asked. It imports what the job imports.
const question = "import sys, torch; from torch import nn; print(sys.version.split()[0], torch.__version__)"

// findPython returns the first Python that can import torch: the wanted one alone if it is given.
func (d *demo) findPython(ctx context.Context, wanted string) (interpreter, error) {
	candidates := d.candidates
	if wanted != "" {
		candidates = []string{wanted}
	}
	var tried []string
	for _, name := range candidates {
		path, err := exec.LookPath(name)
		if err != nil || slices.Contains(tried, path) {
			continue
		}
		tried = append(tried, path)
		python, err := d.ask(ctx, path)
		if err == nil {
			return python, nil
		}
		if ctx.Err() != nil {
			return interpreter{}, ctx.Err()
		}
		if wanted != "" {
			return interpreter{}, fmt.Errorf("%s cannot import torch (%w): install it with %s -m pip install torch", path, err, path)
		}
	}
	switch {
	case wanted != "":
		return interpreter{}, fmt.Errorf("there is no program %s", wanted)
	case len(tried) == 0:
		return interpreter{}, errors.New("the demo trains with PyTorch, and no Python is on PATH: install both, or name a Python with --python")
	}
	return interpreter{}, fmt.Errorf("the demo trains with PyTorch, which %s cannot import: install it with %s -m pip install torch, "+
		"or name another Python with --python",
		strings.Join(tried, " and "), tried[0])
}

// pythons are the names to try: of the active environment, of the environment that this program is installed in, of PATH.
func pythons(self string) (names []string) {
	if environment := os.Getenv("VIRTUAL_ENV"); environment != "" {
		names = append(names, filepath.Join(environment, "bin", "python"))
	}
	return append(names, filepath.Join(filepath.Dir(self), "python"), "python3", "python", "/usr/bin/python3")
}

func (d *demo) ask(ctx context.Context, path string) (interpreter, error) {
	ctx, cancel := context.WithTimeout(ctx, importing)
	defer cancel()
	command := exec.CommandContext(ctx, path, "-c", question)
	command.Dir = "/" // which has no modules that Python would take for torch
	var complaints strings.Builder
	command.Stderr = &complaints
	d.user.On(command)
	out, err := command.Output()
	if err != nil {
		if complaint := last(complaints.String()); complaint != "" {
			err = errors.New(complaint)
		}
		return interpreter{}, err
	}
	fields := strings.Fields(last(string(out)))
	if len(fields) != 2 {
		return interpreter{}, fmt.Errorf("unexpected answer %q", out)
	}
	return interpreter{path: path, version: fields[0], torch: fields[1]}, nil
}
