package elf

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
)

func open(t testing.TB, path string) *File {
	t.Helper()
	e, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func parse(t testing.TB, data []byte) *File {
	t.Helper()
	e, err := New(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestForeignFilesAreRefusedWithTheirReason(t *testing.T) {
	header := func(change func([]byte)) []byte {
		data := bytes.Clone(testelf.Tiny(t, "tiny.so"))
		change(data)
		return data
	}
	for _, c := range []struct {
		claim string
		data  []byte
		want  error
	}{
		{"an empty file", nil, ErrNotELF},
		{"a script", []byte("#!/bin/sh\n" + strings.Repeat("true\n", 100)), ErrNotELF},
		{"a header cut short", testelf.Tiny(t, "tiny.so")[:63], ErrNotELF},
		{"a 32-bit program", header(func(b []byte) { b[4] = 1 }), Err32Bit},
		{"big endian", header(func(b []byte) { b[5] = 2 }), ErrUnsupportedMachine},
		{"riscv64", header(func(b []byte) { b[18] = 243 }), ErrUnsupportedMachine},
	} {
		if _, err := New(bytes.NewReader(c.data)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.claim, err, c.want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an absent file: %v", err)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNotELF) {
		t.Errorf("a directory: %v", err)
	}
}

func TestHeaderFactsOfTheTinyLibrary(t *testing.T) {
	for _, name := range []string{"tiny.so", "tiny-stripped.so"} {
		e := parse(t, testelf.Tiny(t, name))
		if e.Machine() != MachineX86_64 || e.Type() != TypeSharedObject {
			t.Errorf("%s: %v, type %d", name, e.Machine(), e.Type())
		}
		if e.BuildID() != "0123456789abcdef" || e.SoName() != "tiny.so" || e.Interpreter() != "" || e.IsStatic() {
			t.Errorf("%s: build id %q, soname %q, interpreter %q, static %v", name, e.BuildID(), e.SoName(), e.Interpreter(), e.IsStatic())
		}
	}
}

// sectionless is a file as sstrip leaves it: only the program headers remain.
func sectionless(data []byte) []byte {
	data = bytes.Clone(data)
	clear(data[40:48]) // e_shoff
	clear(data[60:64]) // e_shnum, e_shstrndx
	return data
}

func TestSectionHeadersAreNotNeeded(t *testing.T) {
	with, without := parse(t, testelf.Tiny(t, "tiny-stripped.so")), parse(t, sectionless(testelf.Tiny(t, "tiny-stripped.so")))
	if without.BuildID() != with.BuildID() || without.SoName() != with.SoName() {
		t.Errorf("build id %q, soname %q", without.BuildID(), without.SoName())
	}
	want, got := with.FunctionsWithPrefixes([]string{""}), without.FunctionsWithPrefixes([]string{""})
	if len(want) != 2 || len(got) != len(want) {
		t.Fatalf("functions %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("function %v, want %v", got[i], want[i])
		}
	}
	for address := range uint64(0x600) {
		wantName, wantOK := with.PLTTarget(address)
		gotName, gotOK := without.PLTTarget(address)
		if wantName != gotName || wantOK != gotOK || with.IsFunctionStart(address) != without.IsFunctionStart(address) {
			t.Errorf("%#x: target %q, want %q", address, gotName, wantName)
		}
	}
	if s, ok := without.Lookup("schema"); !ok || !bytes.HasPrefix(without.CodeAt(s.Address, s.Size), []byte("add.Tensor(")) {
		t.Errorf("Lookup(schema) = %v, %v", s, ok)
	}
}

func TestSymbolCountFromEitherHashTable(t *testing.T) {
	e := parse(t, testelf.Tiny(t, "tiny.so"))
	sysv := e.dynamicSymbolCount()
	e.dynamic.sysvHash = 0
	if gnu := e.dynamicSymbolCount(); sysv != 6 || gnu != 6 {
		t.Errorf("%d by DT_HASH, %d by DT_GNU_HASH, want 6", sysv, gnu)
	}
}

func TestAddressesAndOffsetsAreInverse(t *testing.T) {
	e := parse(t, testelf.Tiny(t, "tiny.so"))
	for _, c := range []struct {
		address, offset uint64
		ok              bool
	}{
		{0, 0, true}, {0x3bf, 0x3bf, true}, {0x553, 0x553, true}, {0x554, 0, false},
		{0x1557, 0, false}, {0x1558, 0x558, true}, {0x1697, 0x697, true}, {0x1698, 0, false},
		{^uint64(0), 0, false},
	} {
		offset, ok := e.FileOffset(c.address)
		if ok != c.ok || offset != c.offset {
			t.Errorf("FileOffset(%#x) = %#x, %v, want %#x, %v", c.address, offset, ok, c.offset, c.ok)
		}
		if back, ok := e.VirtualAddress(c.offset); c.ok && (!ok || back != c.address) {
			t.Errorf("VirtualAddress(%#x) = %#x, %v, want %#x", c.offset, back, ok, c.address)
		}
	}
	if b := e.CodeAt(0x550, 100); len(b) != 4 {
		t.Errorf("CodeAt across the end of a segment: %d bytes, want 4", len(b))
	}
	if b := e.CodeAt(0x554, 1); b != nil {
		t.Errorf("CodeAt outside every segment: %v", b)
	}
}

func TestAFileThatShrinksFailsInsteadOfFaulting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shrinking.so")
	data := append(bytes.Clone(testelf.Tiny(t, "tiny.so")), make([]byte, 1<<16)...)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	e := open(t, path)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	err := Guard(func() { e.FunctionsWithPrefixes([]string{"ex"}) })
	if !errors.Is(err, ErrTruncated) {
		t.Errorf("Guard = %v, want ErrTruncated", err)
	}
	if err := Guard(func() {}); err != nil {
		t.Errorf("Guard of nothing = %v", err)
	}
	defer func() {
		if recover() != "mine" {
			t.Error("Guard swallowed a panic that was no fault")
		}
	}()
	_ = Guard(func() { panic("mine") })
}
