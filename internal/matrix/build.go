package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// build compiles what guests run. The long form's tests embed DuckDB, for which
// arm64 takes Debian's cross compiler.
func build(directory, arch string, long bool) error {
	type target struct {
		name, pkg  string
		test, full bool
	}
	targets := []target{{"agent", "./cmd/ebpfprof-agent", false, false}, {"tracer.test", "./tracer", true, false}}
	if long {
		targets = append(targets, target{"unwinding.test", "./tracer/unwinding", true, false},
			target{"e2e.test", "./internal/e2e", true, true}, target{"ebpfprof", "./cmd/ebpfprof", false, true})
	}
	for _, t := range targets {
		arguments := []string{"build", "-trimpath"}
		if t.test {
			arguments = []string{"test", "-c"}
		}
		command := exec.Command("go", append(arguments, "-o", filepath.Join(directory, t.name+"-"+arch), t.pkg)...)
		command.Env = append(os.Environ(), "GOARCH="+arch, "CGO_ENABLED=0")
		if t.full {
			command.Env = append(command.Env, "CGO_ENABLED=1")
			if arch == "arm64" {
				command.Env = append(command.Env, "CC=aarch64-linux-gnu-gcc", "CXX=aarch64-linux-gnu-g++")
			}
		}
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s for %s: %w: %s", t.pkg, arch, err, bytes.TrimSpace(out))
		}
	}
	return nil
}

// jobs builds the programs that the long form traces.
func jobs(directory, arch string) error {
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]
	for _, d := range []string{"native", "stubs"} {
		to := filepath.Join(directory, "jobs-"+arch, d)
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		// -k: what is linked with a library that only this machine's architecture has is left out.
		command := exec.Command("make", "-k", "-s", "-C", "testdata/"+d, "MACHINE="+machine, "B="+to)
		if arch == "arm64" {
			command.Args = append(command.Args, "CC=aarch64-linux-gnu-gcc", "CXX=aarch64-linux-gnu-g++")
		}
		if out, err := command.CombinedOutput(); err != nil {
			fmt.Printf("matrix: not all of testdata/%s was built for %s: %s\n", d, arch, lastLine(string(out)))
		}
	}
	return nil
}

// guestPackages are Debian 12's, in the long form's guests.
var guestPackages = []string{"libc6", "libgcc-s1", "libstdc++6", "python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib",
	"libexpat1", "zlib1g", "libssl3", "libffi8", "libbz2-1.0", "liblzma5", "libuuid1"}

// base writes the initramfs that all guests of an architecture have.
func base(directory, arch string, long bool, p *packages) (path string, err error) {
	if err := build(directory, arch, long); err != nil {
		return "", err
	}
	path = filepath.Join(directory, "base-"+arch)
	out, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer out.Close()
	a := newArchive(out)
	a.begin()
	a.entry("init", modeFile|0o755, guestScript)
	names := []string{"busybox-static"}
	if long {
		names = append(names, guestPackages...)
	}
	for _, name := range names {
		deb, err := p.file(name, arch, "")
		if err != nil {
			return "", err
		}
		a.debian(deb)
	}
	for _, name := range []string{"agent", "tracer.test"} {
		a.file("usr/bin/"+name, filepath.Join(directory, name+"-"+arch), 0o755)
	}
	if long {
		err = a.longForm(directory, arch)
	}
	if err == nil {
		err = a.end()
	}
	return path, err
}

// longForm adds a tree in which the tests find what `go test` would show them. What
// they would build is there: make does nothing, and `go build -o FILE` copies.
func (a *archive) longForm(directory, arch string) error {
	if err := jobs(directory, arch); err != nil {
		return err
	}
	for _, name := range []string{"unwinding.test", "e2e.test", "ebpfprof"} {
		a.file("usr/bin/"+name, filepath.Join(directory, name+"-"+arch), 0o755)
	}
	a.entry("usr/bin/python3", modeLink|0o777, []byte("python3.11"))
	a.entry("usr/bin/make", modeFile|0o755, []byte("#!/bin/sh\nexit 0\n"))
	a.entry("usr/bin/go", modeFile|0o755,
		[]byte("#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" != -o ] || cp /usr/bin/ebpfprof \"$2\"; shift; done\n"))
	for _, d := range []string{"tracer/testdata", "tracer/unwinding/testdata", "tracer/catalog", "testdata/jobs", "testdata/symbols", "internal/e2e"} {
		if _, err := os.Stat(d); err == nil {
			a.tree("w/"+d, d)
		}
	}
	for _, d := range []string{"native", "stubs"} {
		a.tree("w/testdata/"+d+"/build", filepath.Join(directory, "jobs-"+arch, d))
	}
	a.file("jobs/spin.py", "internal/matrix/spin.py", 0o644)
	return a.err
}
