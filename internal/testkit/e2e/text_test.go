package e2e

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/plan"
	"github.com/ebpfprof/ebpfprof/tracer/probes"
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

// becomesLinked waits until a tracer has all the probes that are planned for a library of a
// process. Where a function's return is probed, that probe is at its entry as well, and goes
// in first: memory shows that one is there, and not which.
func becomesLinked(t *testing.T, by, pid int, library string, groups ...string) {
	t.Helper()
	planned := map[uint64]int{}
	eachPlan(t, pid, library, groups, func(_ uint64, made *plan.Plan) {
		var usable []int
		for i := range made.Probes {
			if made.Probes[i].Usable() {
				usable = append(usable, i)
			}
		}
		s := probes.SitesOf(made, 0, usable)
		for _, offset := range slices.Concat(s.Ret.Offsets, s.Exit.Offsets, s.Entry.Offsets, s.Stack.Offsets, s.Line.Offsets) {
			planned[offset]++
		}
	})
	missing := func() (sites int) {
		in := linkedAt(t, by, library)
		for offset, n := range planned {
			sites += max(n-in[offset], 0)
		}
		return sites
	}
	for end := time.Now().Add(harness.Patience); missing() > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d probes of %s are not in, or /proc/%d/fdinfo does not say where links are (Linux 6.18 does)", missing(), library, by)
		}
	}
}

// linkedAt counts the probes that a tracer has at each place of a library, by what the
// kernel tells of its uprobe.multi links.
func linkedAt(t *testing.T, by int, library string) map[uint64]int {
	t.Helper()
	entries, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", by))
	if err != nil || len(entries) == 0 {
		t.Fatalf("the tracer has no descriptors: %v", err)
	}
	in := map[uint64]int{}
	for _, entry := range entries {
		info, err := os.ReadFile(entry)
		head, sites, is := strings.Cut(string(info), "ref_ctr_offset")
		if err != nil || !is || !strings.Contains(head, library) {
			continue // closed meanwhile, or something else
		}
		for line := range strings.Lines(sites) {
			var cookie, offset uint64
			if n, _ := fmt.Sscanf(line, "%d 0x%x", &cookie, &offset); n == 2 {
				in[offset]++
			}
		}
	}
	return in
}

// entryTexts are the first bytes of the sites at which the calls of a library are seen
// to begin: as many as a breakpoint changes.
func entryTexts(t *testing.T, pid int, library string, names []string) (texts []text) {
	t.Helper()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	breakpoint := 1
	if runtime.GOARCH == "arm64" {
		breakpoint = 4
	}
	eachPlan(t, pid, library, names, func(bias uint64, made *plan.Plan) {
		for i := range made.Probes {
			planned := &made.Probes[i]
			at := planned.Address + planned.Entry.Offset
			code := made.ELF.CodeAt(at, uint64(breakpoint))
			if !planned.Usable() || len(code) < breakpoint {
				continue
			}
			texts = append(texts, text{planned.Symbol, memory, int64(bias + at), bytes.Clone(code[:breakpoint])})
		}
	})
	if len(texts) == 0 {
		t.Fatalf("pid %d: no probes are planned for %s", pid, library)
	}
	return texts
}

// eachPlan calls f with what is planned for each library of a process whose path has a
// part, and where the process maps it.
func eachPlan(t *testing.T, pid int, library string, names []string, f func(bias uint64, made *plan.Plan)) {
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
	for _, l := range libraries {
		if !strings.Contains(l.Path, library) {
			continue
		}
		e, err := l.OpenELF()
		if err != nil {
			t.Fatal(err)
		}
		if bias, ok := l.Bias(e); ok {
			f(bias, plan.Mapped(p, libraries, l, e, groups))
		}
		e.Close()
	}
}
