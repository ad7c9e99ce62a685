package e2e

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/e2e/harness"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// text is the code of one function in a running process, to be compared with
// the file's: a probe changes it.
type text struct {
	symbol  string
	memory  *os.File
	address int64
	file    []byte
}

// probedFunctions are in every torch and used by every training job.
var probedFunctions = []string{"_ZN5torch8autograd6Engine17evaluate_function", "_ZN2at4_ops5addmm4callE"}

const torchLibrary, openCLLibrary = "/libtorch_cpu.so", "/libOpenCL.so"

// functionTexts finds functions of a library by their symbols, those of C++ by
// what these begin with.
func functionTexts(t *testing.T, pid int, library string, prefixes ...string) (texts []text) {
	t.Helper()
	path, base := mapping(t, pid, library)
	file, symbols := dynamicSymbols(t, path)
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	for _, prefix := range prefixes {
		found := len(texts)
		for _, s := range symbols {
			cxx := strings.HasPrefix(prefix, "_Z") // whose parameters differ between versions
			if s.Size == 0 || s.Name != prefix && !(cxx && strings.HasPrefix(s.Name, prefix)) {
				continue
			}
			code := make([]byte, s.Size)
			if _, err := file.Sections[s.Section].ReadAt(code, int64(s.Value-file.Sections[s.Section].Addr)); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text{s.Name, memory, int64(base + s.Value), code})
			break
		}
		if len(texts) == found {
			t.Fatalf("%s has no function %s…", path, prefix)
		}
	}
	return texts
}

// dynamicSymbols are the symbols that a library shows to others, and the library.
func dynamicSymbols(t *testing.T, library string) (*elf.File, []elf.Symbol) {
	t.Helper()
	file, err := elf.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	return file, symbols
}

// mapping is where a process maps the beginning of a file.
func mapping(t *testing.T, pid int, name string) (path string, base uint64) {
	t.Helper()
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 6 && strings.Contains(fields[5], name) && strings.Trim(fields[2], "0") == "" {
			fmt.Sscanf(fields[0], "%x", &base)
			return fields[5], base
		}
	}
	t.Fatalf("process %d does not map %s", pid, name)
	return "", 0
}

// probed reports whether the function differs from the file.
func (x text) probed(t *testing.T) bool {
	t.Helper()
	now := make([]byte, len(x.file))
	if _, err := x.memory.ReadAt(now, x.address); err != nil {
		t.Fatalf("reading %s: %v", x.symbol, err)
	}
	return !bytes.Equal(now, x.file)
}

// becomes waits until the function is probed, or is not.
func (x text) becomes(t *testing.T, probed bool) {
	t.Helper()
	for end := time.Now().Add(harness.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if x.probed(t) == probed {
			return
		}
	}
	t.Fatalf("%s: probed stays %v", x.symbol, !probed)
}

// becomesProbed waits until every entry is probed that the tracer plans for a library of
// a process. The ends go in before the entries, and the entries of one program before
// those of another: that one function is probed says nothing of the others. The groups are
// those that --probe names; without any all are meant.
func becomesProbed(t *testing.T, pid int, library string, groups ...string) {
	t.Helper()
	for _, x := range entryTexts(t, pid, library, groups) {
		x.becomes(t, true)
	}
}

// becomesRecorded waits until a recording has begun: probes that are in before pass by what
// they see (probe.passed), and on a busy machine that can take as long as a job's calls do.
func becomesRecorded(t *testing.T, c *harness.Command) {
	t.Helper()
	c.Until(t, "that it is recorded", func(_ []string, errs string) bool { return strings.Contains(errs, "attached in ") })
}

// entryTexts are the first bytes of the sites at which the calls of a library are seen
// to begin: as many as a breakpoint changes.
func entryTexts(t *testing.T, pid int, library string, names []string) (texts []text) {
	t.Helper()
	p, err := process.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := p.Libraries()
	if err != nil {
		t.Fatal(err)
	}
	groups, err := tracer.SelectGroups(tracer.LevelWindow, names)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	breakpoint := 1
	if runtime.GOARCH == "arm64" {
		breakpoint = 4
	}
	for _, l := range libraries {
		if !strings.Contains(l.Path, library) {
			continue
		}
		e, err := l.OpenELF()
		if err != nil {
			t.Fatal(err)
		}
		bias, ok := l.Bias(e)
		plan := plan.Mapped(p, libraries, l, e, groups)
		for i := range plan.Probes {
			planned := &plan.Probes[i]
			at := planned.Address + planned.Entry.Offset
			code := e.CodeAt(at, uint64(breakpoint))
			if !ok || !planned.Usable() || len(code) < breakpoint {
				continue
			}
			texts = append(texts, text{planned.Symbol, memory, int64(bias + at), bytes.Clone(code[:breakpoint])})
		}
		e.Close()
	}
	if len(texts) == 0 {
		t.Fatalf("pid %d: no probes are planned for %s", pid, library)
	}
	return texts
}
