package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A wheel is a program and the Python package that runs it: PyPA's "Binary distribution
// format", which pip, uv and pipx install without running anything.
type wheel struct {
	version  string // PEP 440
	platform string // such as manylinux_2_28_x86_64
	program  string // path of the program
	source   string // directory that holds the Python package ebpfprof
	readme   string // path of the description, Markdown
	license  string // path of the licence's text
}

// name is the file's name by PEP 427.
func (w wheel) name() string {
	return fmt.Sprintf("ebpfprof-%s-py3-none-%s.whl", w.version, w.platform)
}

// written is one file of a wheel as its RECORD lists it.
type written struct {
	name, digest string
	size         int64
}

// write makes the file in a directory and returns its path. Two calls with equal input write
// equal bytes: names are sorted and times are those of the format's beginning.
func (w wheel) write(dir string) (string, error) {
	to := filepath.Join(dir, w.name())
	f, err := os.CreateTemp(dir, ".wheel-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := w.fill(f); err != nil {
		return "", fmt.Errorf("writing %s: %w", to, err)
	}
	if err := f.Chmod(0o644); err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	return to, os.Rename(f.Name(), to)
}

func (w wheel) fill(to io.Writer) error {
	archive := zip.NewWriter(to)
	var record []written
	add := func(name string, mode fs.FileMode, from io.Reader) error {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		header.SetMode(mode)
		file, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		sum := sha256.New()
		size, err := io.Copy(io.MultiWriter(file, sum), from)
		record = append(record, written{name, base64.RawURLEncoding.EncodeToString(sum.Sum(nil)), size})
		return err
	}
	addFile := func(name string, mode fs.FileMode, from string) error {
		f, err := os.Open(from)
		if err != nil {
			return err
		}
		defer f.Close()
		return add(name, mode, f)
	}
	modules, err := w.modules()
	if err != nil {
		return err
	}
	for _, m := range modules {
		if err := addFile(m, 0o644, filepath.Join(w.source, filepath.FromSlash(m))); err != nil {
			return err
		}
	}
	// What a wheel has under scripts/ is installed on PATH, executable.
	if err := addFile(w.stem()+".data/scripts/ebpfprof", 0o755, w.program); err != nil {
		return err
	}
	info := w.stem() + ".dist-info/"
	if err := addFile(info+"licenses/LICENSE", 0o644, w.license); err != nil {
		return err
	}
	description, err := os.ReadFile(w.readme)
	if err != nil {
		return err
	}
	for _, of := range [][2]string{{"METADATA", w.metadata(string(description))}, {"WHEEL", w.tags()}} {
		if err := add(info+of[0], 0o644, strings.NewReader(of[1])); err != nil {
			return err
		}
	}
	slices.SortFunc(record, func(a, b written) int { return strings.Compare(a.name, b.name) })
	var lines strings.Builder
	for _, r := range record {
		fmt.Fprintf(&lines, "%s,sha256=%s,%d\n", r.name, r.digest, r.size)
	}
	fmt.Fprintf(&lines, "%sRECORD,,\n", info)
	if err := add(info+"RECORD", 0o644, strings.NewReader(lines.String())); err != nil {
		return err
	}
	return archive.Close()
}

// modules lists the files of the Python package, sorted, as paths below source.
func (w wheel) modules() ([]string, error) {
	var found []string
	err := fs.WalkDir(os.DirFS(w.source), "ebpfprof", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if path.Ext(name) == ".py" || path.Base(name) == "py.typed" {
			found = append(found, name)
		}
		return nil
	})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("no Python package ebpfprof in %s", w.source)
	}
	return found, err
}

func (w wheel) stem() string { return "ebpfprof-" + w.version }

func (w wheel) tags() string {
	return "Wheel-Version: 1.0\nGenerator: ebpfprof\nRoot-Is-Purelib: false\nTag: py3-none-" + w.platform + "\n"
}

func (w wheel) metadata(description string) string {
	return "Metadata-Version: 2.4\nName: ebpfprof\nVersion: " + w.version + `
Summary: Profiles running PyTorch and JAX jobs with eBPF, and changes nothing in them
License-Expression: Apache-2.0
License-File: LICENSE
Requires-Python: >=3.8
Provides-Extra: sql
Requires-Dist: duckdb>=1.0; extra == "sql"
Keywords: profiler,eBPF,PyTorch,JAX,GPU
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: System :: Monitoring
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

` + description
}

var described = regexp.MustCompile(`^v?(\d+(?:\.\d+)*)(?:-(dev))?(?:-(\d+)-g([0-9a-f]+))?(-dirty)?$`)

// pythonVersion is a version as git describes it, by PEP 440: v0.3.0 is 0.3.0, four commits
// later 0.3.0.post4+g1a78d23; what no tag names is a development version.
func pythonVersion(git string) string {
	m := described.FindStringSubmatch(git)
	if m == nil {
		local := strings.ReplaceAll(git, "-", ".")
		return "0.0.0.dev0+g" + local
	}
	version, local := m[1], ""
	if m[2] != "" {
		version += ".dev0"
	}
	if m[3] != "" {
		version += ".post" + m[3]
		local = "g" + m[4]
	}
	if m[5] != "" {
		local = strings.TrimPrefix(local+".dirty", ".")
	}
	if local != "" {
		version += "+" + local
	}
	return version
}
