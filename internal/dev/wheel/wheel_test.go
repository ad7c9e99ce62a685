package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func TestVersionsAreThoseOfPEP440(t *testing.T) {
	for git, want := range map[string]string{
		"v0.3.0":                  "0.3.0",
		"0.2.0-dev":               "0.2.0.dev0",
		"v1.2.3-4-g1a78d23":       "1.2.3.post4+g1a78d23",
		"v1.2.3-dirty":            "1.2.3+dirty",
		"v1.2.3-4-g1a78d23-dirty": "1.2.3.post4+g1a78d23.dirty",
		"1a78d23":                 "0.0.0.dev0+g1a78d23",
		"1a78d23-dirty":           "0.0.0.dev0+g1a78d23.dirty",
	} {
		if got := pythonVersion(git); got != want {
			t.Errorf("%s: %s, want %s", git, got, want)
		}
	}
}

// example is a wheel of a program of one line, and of the real Python package.
func example(t *testing.T) wheel {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join("..", "..", "..")
	return wheel{
		version: "0.0.1", platform: "linux_x86_64", program: program,
		source: filepath.Join(root, "python"), readme: filepath.Join(root, "python", "README.md"), license: filepath.Join(root, "LICENSE"),
	}
}

// RECORD lists every file with its digest and size, or pip refuses the wheel.
func TestTheRecordIsThatOfTheFiles(t *testing.T) {
	path, err := example(t).write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	files := map[string][]byte{}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name], err = io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == "ebpfprof-0.0.1.data/scripts/ebpfprof" && f.Mode().Perm() != 0o755 {
			t.Errorf("the program has mode %o", f.Mode().Perm())
		}
	}
	lines, err := csv.NewReader(bytes.NewReader(files["ebpfprof-0.0.1.dist-info/RECORD"])).ReadAll()
	if err != nil || len(lines) != len(files) {
		t.Fatalf("%d lines of %d files, %v", len(lines), len(files), err)
	}
	for _, l := range lines {
		sum := sha256.Sum256(files[l[0]])
		if l[1] == "" {
			continue // RECORD itself
		}
		if l[1] != "sha256="+base64.RawURLEncoding.EncodeToString(sum[:]) || l[2] != strconv.Itoa(len(files[l[0]])) {
			t.Errorf("%v", l)
		}
	}
	for _, name := range []string{"ebpfprof/__init__.py", "ebpfprof/py.typed", "ebpfprof-0.0.1.dist-info/METADATA"} {
		if files[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestEqualInputIsAnEqualWheel(t *testing.T) {
	w := example(t)
	var contents [2][]byte
	for i := range contents {
		path, err := w.write(t.TempDir())
		if err == nil {
			contents[i], err = os.ReadFile(path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(contents[0], contents[1]) {
		t.Error("two wheels of the same files differ")
	}
}

func TestAMissingProgramLeavesNoWheel(t *testing.T) {
	w, dir := example(t), t.TempDir()
	w.program += "-gone"
	if _, err := w.write(dir); err == nil {
		t.Error("no error")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
