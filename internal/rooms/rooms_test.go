package rooms

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ebpfprof/ebpfprof/"

// floors are the packages from the ground up, as patterns of path.Match. A
// package imports only what stands on a floor below its own; the first pattern
// that matches counts.
var floors = [][]string{
	{"bpf", "symbolize/callstack", "symbolize/cufunction", "symbolize/elf", "symbolize/demangle", "symbolize/mlir", "tracer/catalog/spec", "tracer/site", "tracer/procfile", "tracer/beat", "tracer/cache", "tracer/uprobe",
		"tracer/syscallnames", "tracer/slots", "output/columnfile", "internal/pythons", "internal/testrun", "tracer/footprint", "internal/directory",
		"internal/attacker", "internal/testcache", "internal/columns", "internal/hostile", "internal/testelf", "internal/testcommand", "internal/testfile", "internal/agentrun", "internal/bench/figure", "internal/bench/setup", "internal/printable", "internal/amount", "internal/usercode", "internal/graph", "internal/steps", "internal/study", "internal/verdict",
		"internal/flops", "internal/kernelclass",
		"internal/memplan/solve", "internal/memplan/blocks", "internal/pickle", "internal/fleet/trigger", "internal/fleet/manifest", "internal/fleet/spark", "internal/fleet/iceberg"},
	{"symbolize/torch", "symbolize/elf/elftest", "tracer/catalog/cuda", "internal/testrecord", "internal/testbucket", "internal/testspark"},
	{"internal/dataset/column", "tracer/catalog/*"},
	{"symbolize", "tracer/catalog", "tracer/features", "internal/mapfill", "internal/peaks", "internal/memplan/instance", "internal/memplan/draw", "internal/memplan/pool",
		"internal/memplan/dense", "internal/findings/thresholds",
		"internal/memplan/holders"},
	{"symbolize/*", "tracer/event", "internal/testkernel", "internal/memplan/hot", "internal/memplan/snapshot"},
	{"symbolize/*/*", "tracer/counter", "tracer/filter", "tracer/pjrt", "tracer/process", "tracer/progress", "tracer/transfers", "internal/memplan/replay"},
	{"tracer/generated", "tracer/mapped", "tracer/weights"},
	{"tracer/python", "tracer/unwinding", "tracer/accel", "tracer/budget", "tracer/tensor", "tracer/waits"},
	{"tracer/stacks", "tracer/kernel", "tracer/plan"},
	{"tracer/sampler", "tracer/probetable"},
	{"tracer/rows"},
	{"tracer/decode"},
	{"tracer/probes"},
	{"tracer/job"},
	{"tracer"},
	{"output", "internal/redact", "internal/collective", "internal/fleet/pattern", "internal/otlp", "internal/fleet/hang", "internal/fleet/flightrecorder", "internal/agent/jobs", "internal/agent/sinks"},
	{"internal/bench/recording", "internal/dataset", "internal/scripted", "internal/fleet/localise", "internal/fleet/store", "internal/derived"},
	{"output/schemadoc", "internal/fleet/request", "internal/fleet/outbox", "internal/fleet/registrar", "internal/fleet/evidence", "internal/bench/loop", "internal/bench/paired", "internal/cli", "internal/importer", "internal/profile", "internal/annotation", "internal/search"},
	{"internal/bench/calls", "internal/bench/samples", "internal/bench/training", "internal/query", "internal/lint", "internal/calltree", "internal/whatif", "internal/timeline", "internal/top", "internal/agent/config"},
	{"internal/findings/evidence", "internal/agent/spool", "internal/bench/alwayson"},
	{"internal/findings/rules"},
	{"internal/commands/answer", "internal/stacks", "internal/memplan/source", "internal/findings", "internal/export", "internal/views",
		"internal/fleet/source", "internal/fleet/report", "internal/fleet/history", "internal/fleet/live"},
	{"internal/memplan/analysis"},
	{"analysis", "internal/diff", "internal/memplan/text"},
	{"internal/report", "internal/e2e/harness"},
	{"internal/commands/analysis", "internal/commands/fleet", "internal/commands/memory", "internal/recorder", "internal/matrix", "internal/gpucheck", "internal/bench", "internal/e2e", "internal/badinput", "internal/rooms"},
	{"internal/doctor", "internal/soak", "internal/shortruns", "internal/pairs", "internal/planted", "internal/fleetfaults", "internal/agent/worker", "internal/commands/data"},
	{"internal/capture", "internal/agent"},
	{"cmd/*"},
}

// loader is what a laptop does without.
func loader(pkg string) bool {
	return pkg == "bpf" || pkg == "tracer" || strings.HasPrefix(pkg, "tracer/") && pkg != "tracer/event" ||
		strings.HasPrefix(pkg, "github.com/cilium/ebpf")
}

type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// watch lets go test know of every source file: what go list reads is read by
// another process, and a cached answer would be one about older imports.
func watch(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".go") {
			_, err = os.Stat(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// list runs go list; paths of this module lose its name.
func list(t *testing.T, arguments ...string) (found []goPackage) {
	t.Helper()
	watch(t)
	command := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,Deps"}, arguments...)...)
	command.Dir = "../.."
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	own := func(names []string) []string {
		for i := range names {
			names[i] = strings.TrimPrefix(names[i], module)
		}
		return names
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, module)
		p.Imports, p.Deps = own(p.Imports), own(p.Deps)
		found = append(found, p)
	}
}

func floorOf(pkg string) int {
	return slices.IndexFunc(floors, func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			match, _ := path.Match(pattern, pkg)
			return match
		})
	})
}

func TestImportsRunOneWay(t *testing.T) {
	packages := list(t, "./...")
	ours := map[string]bool{}
	for _, p := range packages {
		ours[p.ImportPath] = true
	}
	if len(ours) < 20 {
		t.Fatalf("only %d packages found", len(ours))
	}
	for _, p := range packages {
		floor := floorOf(p.ImportPath)
		if floor < 0 {
			t.Errorf("%s has no floor: give it one in the table of this test", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			if ours[imported] && floorOf(imported) >= floor {
				t.Errorf("%s (floor %d) imports %s (floor %d)", p.ImportPath, floor, imported, floorOf(imported))
			}
		}
	}
}

func TestReadingADatasetNeedsNoLoader(t *testing.T) {
	reader := list(t, "-tags", "reader", "./cmd/ebpfprof")[0]
	if !slices.Contains(reader.Deps, "internal/query") {
		t.Fatal("the reader does not query: is this its list?")
	}
	for _, dep := range reader.Deps {
		if loader(dep) {
			t.Errorf("the build for reading imports %s", dep)
		}
	}
	for _, dep := range list(t, "./analysis")[0].Deps {
		if loader(dep) {
			t.Errorf("package analysis imports %s", dep)
		}
	}
	tracer := list(t, "./cmd/ebpfprof")[0]
	if !slices.ContainsFunc(tracer.Deps, loader) {
		t.Error("the whole build imports no loader either: this test can't fail")
	}
}

// What the reader imports compiles where there is no Linux, as far as it needs no cgo.
func TestReadingADatasetNeedsNoLinux(t *testing.T) {
	reader := list(t, "-tags", "reader", "./cmd/ebpfprof")[0]
	var portable []string
	for _, p := range list(t, "./...") {
		needsCgo := slices.ContainsFunc(p.Deps, func(d string) bool { return strings.HasPrefix(d, "github.com/duckdb/") })
		if slices.Contains(reader.Deps, p.ImportPath) && !needsCgo {
			portable = append(portable, "./"+p.ImportPath)
		}
	}
	if len(portable) < 5 {
		t.Fatalf("only %q", portable)
	}
	command := exec.Command("go", append([]string{"build"}, portable...)...)
	command.Dir = "../.."
	command.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
