package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
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
			target{"uprobe.test", "./tracer/uprobe", true, false},
			target{"e2e.test", "./internal/testkit/e2e", true, true}, target{"ebpfprof", "./cmd/ebpfprof", false, true})
	}
	for _, t := range targets {
		arguments := []string{"build", "-trimpath"}
		if t.test {
			arguments = []string{"test", "-c"}
		}
		if !t.full {
			arguments = append(arguments, "-tags", "static") // guests without Python have no C library
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
	if libbpfHere(arch) {
		return buildLibbpf(directory, arch)
	}
	return nil
}

// openCL returns a directory with the library that the jobs for an architecture are
// linked with, and that this machine has for its own alone.
func openCL(directory, arch string, p *packages) (string, error) {
	deb, err := p.file("ocl-icd-libopencl1", arch, "")
	if err != nil {
		return "", err
	}
	to := filepath.Join(directory, "lib-"+arch)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	return to, eachFile(deb, func(h *tar.Header, r io.Reader) error {
		if h.Typeflag != tar.TypeReg || !strings.HasPrefix(path.Base(h.Name), "libOpenCL.so.") {
			return nil
		}
		contents, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, "libOpenCL.so"), contents, 0o644)
	})
}

// jobs builds the programs that the long form traces.
func jobs(directory, arch string, p *packages) error {
	libraries, err := openCL(directory, arch, p)
	if err != nil {
		return err
	}
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]
	for _, d := range []string{"native", "stubs"} {
		to := filepath.Join(directory, "jobs-"+arch, d)
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		// -k: what is linked with a library that only this machine's architecture has is left out.
		command := exec.Command("make", "-k", "-s", "-C", "testdata/"+d, "MACHINE="+machine, "B="+to)
		if arch == "arm64" {
			command.Args = append(command.Args, "CC=aarch64-linux-gnu-gcc -L"+libraries, "CXX=aarch64-linux-gnu-g++")
		}
		if out, err := command.CombinedOutput(); err != nil {
			fmt.Printf("matrix: not all of testdata/%s was built for %s: %s\n", d, arch, lastLine(string(out)))
		}
	}
	return nil
}

// guestPackages are Debian 12's, in the long form's guests: what C++ and Python jobs
// need, and PoCL, which compiles and links kernels with clang.
var guestPackages = strings.Fields(`libc6 libgcc-s1 libstdc++6 dash
	python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libexpat1 zlib1g libssl3 libffi8 libbz2-1.0 liblzma5 libuuid1
	ocl-icd-libopencl1 pocl-opencl-icd libpocl2 libpocl2-common libhwloc15 libudev1 libc6-dev libgcc-12-dev libllvm15 libclang-cpp15 libedit2 libbsd0
	libmd0 libtinfo6 libxml2 libicu72 libz3-4 libzstd1 clang-15 llvm-15-linker-tools libclang1-15 binutils binutils-common
	binutils-x86-64-linux-gnu:amd64 binutils-aarch64-linux-gnu:arm64 libbinutils libctf0 libctf-nobfd0 libgprofng0 libjansson4`)

// base writes the initramfs that all guests of an architecture have.
func base(directory, arch string, long bool, p *packages) (at string, err error) {
	if err := build(directory, arch, long); err != nil {
		return "", err
	}
	at = filepath.Join(directory, "base-"+arch)
	out, err := os.Create(at)
	if err != nil {
		return "", err
	}
	defer out.Close()
	a := newArchive(out)
	names, shell := []string{"busybox-static"}, "busybox"
	if long {
		names, shell = append(names, guestPackages...), "dash"
	}
	a.begin(shell)
	a.entry("init", modeFile|0o755, guestScript)
	for _, name := range names {
		name, only, _ := strings.Cut(name, ":")
		if only != "" && only != arch {
			continue
		}
		deb, err := p.file(name, arch, "")
		if err != nil {
			return "", err
		}
		a.debian(deb)
	}
	programs := []string{"agent", "tracer.test"}
	if libbpfHere(arch) {
		programs = append(programs, libbpfTest)
	}
	for _, name := range programs {
		a.file("usr/bin/"+name, filepath.Join(directory, name+"-"+arch), 0o755)
	}
	if long {
		err = a.longForm(directory, arch, p)
	}
	if err == nil {
		err = a.end()
	}
	return at, err
}

// longForm adds a tree in which the tests find what `go test` would show them. What
// they would build is there: make does nothing, and `go build -o FILE` copies.
func (a *archive) longForm(directory, arch string, p *packages) error {
	if err := jobs(directory, arch, p); err != nil {
		return err
	}
	for _, name := range []string{"unwinding.test", "uprobe.test", "e2e.test", "ebpfprof"} {
		a.file("usr/bin/"+name, filepath.Join(directory, name+"-"+arch), 0o755)
	}
	a.entry("usr/bin/python3", modeLink|0o777, []byte("python3.11"))
	a.entry("usr/bin/make", modeFile|0o755, []byte("#!/bin/sh\nexit 0\n"))
	a.entry("usr/bin/go", modeFile|0o755,
		[]byte("#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" != -o ] || cp /usr/bin/ebpfprof \"$2\"; shift; done\n"))
	for _, d := range []string{"tracer/testdata", "tracer/unwinding/testdata", "tracer/catalog", "testdata/jobs", "testdata/symbols",
		"internal/testkit/e2e"} {
		if _, err := os.Stat(d); err == nil {
			a.tree("w/"+d, d)
		}
	}
	for _, d := range []string{"native", "stubs"} {
		a.tree("w/testdata/"+d+"/build", filepath.Join(directory, "jobs-"+arch, d))
	}
	a.file("jobs/spin.py", "internal/dev/matrix/spin.py", 0o644)
	return a.err
}
