package elf

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
)

// TestExtentsAreThoseOfReadelf compares with the "pc=start..end" of every
// frame description.
func TestExtentsAreThoseOfReadelf(t *testing.T) {
	for _, path := range testelf.Globs("/usr/lib/*-linux-gnu/libc.so.6", "/usr/lib/*-linux-gnu/libstdc++.so.6",
		"/usr/bin/python3.[0-9]*[0-9]") {
		e := open(t, path)
		var starts []uint64
		output(t, func(line string) {
			if !strings.Contains(line, " FDE ") {
				return
			}
			_, bounds, _ := strings.Cut(line, "pc=")
			low, high, _ := strings.Cut(bounds, "..")
			start, err := strconv.ParseUint(low, 16, 64)
			end, err2 := strconv.ParseUint(high, 16, 64)
			if err != nil || err2 != nil {
				t.Fatalf("%s: %q", path, line)
			}
			starts = append(starts, start)
			for _, address := range []uint64{start, (start + end) / 2, end - 1} {
				if gotStart, gotEnd, ok := e.Extent(address); !ok || gotStart != start || gotEnd != end {
					t.Errorf("%s: Extent(%#x) = %#x, %#x, %v, want %#x, %#x", path, address, gotStart, gotEnd, ok, start, end)
				}
			}
			if !e.IsFunctionStart(start) {
				t.Errorf("%s: no function start at %#x", path, start)
			}
		}, "readelf", "--debug-dump=frames", path)
		slices.Sort(starts)
		if got := e.FunctionStarts(); !slices.Equal(got, slices.Compact(starts)) || len(got) == 0 {
			t.Errorf("%s: %d function starts, readelf has %d", path, len(got), len(starts))
		}
		t.Logf("%s: %d extents", filepath.Base(path), len(starts))
	}
}

func TestExtentsWithoutTheSearchTableAreTheSame(t *testing.T) {
	tiny := filepath.Join(t.TempDir(), "tiny.so")
	if err := os.WriteFile(tiny, testelf.Tiny(t, "tiny.so"), 0o600); err != nil {
		t.Fatal(err)
	}
	paths := append(testelf.Globs("/usr/lib/*-linux-gnu/libc.so.6", "/usr/lib/*-linux-gnu/libstdc++.so.6"), tiny)
	for _, path := range paths {
		with, without := open(t, path), open(t, path)
		without.ehFrameHeader, without.framesOnce, without.unwind = segmentRange{}, sync.Once{}, unwindIndex{}
		for i := range without.sections {
			if without.sections[i].name == ".eh_frame_hdr" {
				without.sections[i].name = ""
			}
		}
		starts := with.FunctionStarts()
		if got := without.FunctionStarts(); !slices.Equal(got, starts) || len(without.unwind.table) != 0 {
			t.Errorf("%s: %d function starts by scanning, %d in the table", path, len(got), len(starts))
		}
		for _, start := range starts {
			wantStart, wantEnd, wantOK := with.Extent(start + 1)
			gotStart, gotEnd, gotOK := without.Extent(start + 1)
			if gotStart != wantStart || gotEnd != wantEnd || gotOK != wantOK {
				t.Fatalf("%s: Extent(%#x) = %#x, %#x by scanning, %#x, %#x by the table", path, start+1, gotStart, gotEnd, wantStart, wantEnd)
			}
		}
	}
}

func TestOperatorsAreWholeFunctions(t *testing.T) {
	for _, path := range testelf.Libtorchs(t) {
		e := open(t, path)
		odd := 0
		for _, s := range e.FunctionsWithPrefixes([]string{"_ZN2at4_ops"}) {
			start, end, ok := e.Extent(s.Address)
			if !ok || start != s.Address || end-start != s.Size {
				if odd++; odd < 5 {
					t.Logf("%s: %s [%#x,+%d) has extent [%#x,%#x)", path, s.Name, s.Address, s.Size, start, end)
				}
			}
		}
		if odd > 0 {
			t.Errorf("%s: %d operators whose extent is not their symbol's", path, odd)
		}
	}
}

func TestNoFunctionOutsideTheCode(t *testing.T) {
	e := parse(t, testelf.Tiny(t, "tiny.so"))
	if starts := e.FunctionStarts(); !slices.Equal(starts, []uint64{0x340, 0x380, 0x3bf, 0x417}) {
		t.Errorf("function starts %#x", starts)
	}
	for _, address := range []uint64{0, 0x33f, 0x44f, 0x460, ^uint64(0)} {
		if start, end, ok := e.Extent(address); ok {
			t.Errorf("Extent(%#x) = %#x, %#x", address, start, end)
		}
	}
}
