package elf

import (
	"bufio"
	"errors"
	"maps"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
)

// output streams the lines of a tool, and skips the test where there is none.
func output(t testing.TB, line func(string), name string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("no %s here: install binutils", name)
	}
	cmd := exec.Command(name, args...)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line(lines.Text())
	}
	// readelf exits with 1 where a file names debug information that is not
	// installed; what it printed is complete, and compared one for one.
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) || lines.Err() != nil {
		t.Fatalf("%s: %v, %v", name, err, lines.Err())
	}
}

type namedAddress struct {
	name    string
	address uint64
}

var readelfCache = map[string]map[string]map[namedAddress]uint64{}

// readelfSymbols are the sizes of the defined symbols of some types, as
// readelf lists them.
func readelfSymbols(t testing.TB, path string, types ...string) map[namedAddress]uint64 {
	byType := readelfCache[path]
	if byType == nil {
		byType = map[string]map[namedAddress]uint64{"FUNC": {}, "IFUNC": {}, "OBJECT": {}}
		output(t, func(line string) {
			f := strings.Fields(line)
			if len(f) < 8 || f[6] == "UND" || byType[f[3]] == nil {
				return
			}
			address, _ := strconv.ParseUint(f[1], 16, 64)
			size, err := strconv.ParseUint(f[2], 0, 64)
			if err != nil {
				t.Fatalf("%s: %q", path, line)
			}
			name, _, _ := strings.Cut(f[7], "@")
			at := namedAddress{name, address}
			byType[f[3]][at] = max(byType[f[3]][at], size)
		}, "readelf", "-sW", path)
		readelfCache[path] = byType
	}
	symbols := map[namedAddress]uint64{}
	for _, kind := range types {
		maps.Copy(symbols, byType[kind])
	}
	return symbols
}

func TestFunctionsAreThoseOfReadelf(t *testing.T) {
	for _, path := range testelf.SystemLibraries(t) {
		want := readelfSymbols(t, path, "FUNC", "IFUNC")
		got := open(t, path).FunctionsWithPrefixes([]string{""})
		if len(got) != len(want) || len(got) == 0 {
			t.Errorf("%s: %d functions, readelf has %d", path, len(got), len(want))
		}
		for _, s := range got {
			if size, ok := want[namedAddress{s.Name, s.Address}]; !ok || size != s.Size {
				t.Errorf("%s: %+v, readelf has size %d (%v)", path, s, size, ok)
				break
			}
		}
		t.Logf("%s: %d functions", filepath.Base(path), len(got))
	}
}

// TestAMachineWithOneCPUFindsAsManyFunctions: in a table with more functions than one search may find.
func TestAMachineWithOneCPUFindsAsManyFunctions(t *testing.T) {
	const functions = maxMatches * 5 / 4
	table := symbolTable{entries: make([]byte, functions*symbolSize), strings: []byte("\x00f\x00")}
	for i := range functions {
		entry := table.entries[i*symbolSize:]
		le.PutUint32(entry, 1)
		entry[4] = symbolFunction
		le.PutUint16(entry[6:], 1)
		le.PutUint64(entry[8:], uint64(i+1))
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	file := &File{symtab: table}
	if got := file.match(newPrefixTree([]string{"f"}), functionKinds); len(got) != functions {
		t.Errorf("%d of %d functions found", len(got), functions)
	}
}

func TestObjectsAreThoseOfReadelf(t *testing.T) {
	for _, path := range testelf.SystemLibraries(t) {
		want := readelfSymbols(t, path, "OBJECT")
		maps.DeleteFunc(want, func(at namedAddress, _ uint64) bool { return !strings.HasPrefix(at.name, "_ZTV") })
		got := open(t, path).ObjectsWithPrefix("_ZTV")
		if len(got) != len(want) {
			t.Errorf("%s: %d vtables, readelf has %d", path, len(got), len(want))
		}
	}
}

func TestLookupFindsEveryExportedSymbol(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector, which has nothing to find in it: make test-kernel runs it without")
	}
	for _, path := range testelf.SystemLibraries(t) {
		e := open(t, path)
		addresses := map[string]map[uint64]bool{}
		for at := range readelfSymbols(t, path, "FUNC", "IFUNC", "OBJECT") {
			if addresses[at.name] == nil {
				addresses[at.name] = map[uint64]bool{}
			}
			addresses[at.name][at.address] = true
		}
		looked := 0
		for name, known := range addresses {
			if looked++; looked > 300 {
				break
			}
			if s, ok := e.Lookup(name); !ok || !known[s.Address] || s.Name != name {
				t.Errorf("%s: Lookup(%q) = %+v, %v", path, name, s, ok)
			}
		}
		for _, absent := range []string{"", "no_such_symbol", "mallo", "_ZN2at4_ops"} {
			if s, ok := e.Lookup(absent); ok {
				t.Errorf("%s: Lookup(%q) = %+v", path, absent, s)
			}
		}
	}
}

func TestTheLongestPrefixClaimsAName(t *testing.T) {
	e := parse(t, testelf.Tiny(t, "tiny.so"))
	prefixes := []string{"ex", "exported", "_ZN2at4_ops", "exp", "imported", "schema"}
	got := e.FunctionsWithPrefixes(prefixes)
	if len(got) != 2 || got[0].Name != "exported" || got[0].Prefix != 1 || got[1].Prefix != 2 {
		t.Errorf("%+v", got)
	}
	if all := e.FunctionsWithPrefixes([]string{""}); len(all) != 3 || all[0].Name != "local" {
		t.Errorf("the empty prefix: %+v", all)
	}
	if none := e.FunctionsWithPrefixes(nil); len(none) != 0 {
		t.Errorf("no prefix: %+v", none)
	}
}

func TestExportedFunctionsAreThoseOfTheDynamicTable(t *testing.T) {
	e := parse(t, testelf.Tiny(t, "tiny.so"))
	if got := e.ExportedFunctions([]string{""}); len(got) != 2 || got[0].Name != "exported" {
		t.Errorf("%+v", got)
	}
	for _, path := range testelf.Libtorchs(t) {
		e := open(t, path)
		prefixes := []string{"_ZN2at4_ops"}
		if got, all := e.ExportedFunctions(prefixes), e.FunctionsWithPrefixes(prefixes); len(got) < 5900 || len(got) > len(all) {
			t.Errorf("%s: %d exported, %d in all", path, len(got), len(all))
		}
	}
}
