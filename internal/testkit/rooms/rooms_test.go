package rooms

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ebpfprof/ebpfprof/"

// A rule forbids some packages to depend on others, however many imports lie between. Patterns are
// those of go list: a/... is a and everything below it; unless takes packages out of what is forbidden.
type rule struct {
	from   []string
	never  []string
	unless []string
	why    string
}

var (
	// loader is what puts probes into a machine and reads their rings. tracer/event has the types that
	// everybody shares.
	loader = []string{"bpf", "tracer/...", "github.com/cilium/ebpf/..."}
	// developers is what only this project's developers run; no rule is about what it imports.
	developers = []string{"internal/dev/...", "internal/testkit/..."}
	analyses   = []string{"internal/dataset/...", "internal/model/...", "internal/answer/...", "internal/exchange/...", "analysis"}
)

var rules = []rule{
	{from: []string{"bpf", "symbolize/..."}, never: []string{"tracer/...", "output/...", "internal/..."},
		unless: []string{"internal/directory", "internal/testkit/pythons"},
		why:    "kernel side and symbols are the ground that all else stands on"}, // offsetof, a generator, looks for Pythons
	{from: []string{"tracer/event"}, never: []string{"bpf", "tracer/...", "output/...", "internal/..."}, unless: []string{"tracer/event"},
		why: "events are what the tracer and the readers of datasets share"},
	{from: []string{"tracer/..."}, never: []string{"output/...", "analysis", "internal/..."},
		unless: []string{"internal/flops", "internal/directory"},
		why:    "the tracer delivers events to whoever asked; it does not know datasets"},
	{from: []string{"output/..."}, never: append([]string{"internal/..."}, loader...), unless: []string{"tracer/event", "internal/directory"},
		why: "a dataset is written of events alone"},
	{from: analyses, never: loader, unless: []string{"tracer/event"},
		why: "an analysis runs on a laptop, without root, on a dataset from elsewhere"},
	{from: analyses, never: []string{"internal/record/...", "internal/cli/...", "internal/agent/..."},
		why: "an analysis can be used without a command line, a recording or an agent"},
	{from: []string{"internal/dataset/..."}, never: []string{"internal/model/...", "internal/answer/...", "internal/exchange/...",
		"internal/fleet/..."},
		why: "opening and querying a dataset does not depend on what is concluded from it"},
	{from: []string{"internal/model/..."}, never: []string{"internal/answer/...", "internal/exchange/...", "internal/fleet/..."},
		why: "what analyses share does not depend on one of them"},
	{from: []string{"internal/record/..."}, never: []string{"internal/answer/...", "internal/agent/...", "internal/fleet/...",
		"github.com/duckdb/..."},
		why: "the agent records with it, on nodes without DuckDB"},
	{from: []string{"internal/agent/...", "cmd/ebpfprof-agent"},
		never: []string{"github.com/duckdb/...", "internal/dataset/...", "internal/answer/...", "internal/fleet/report",
			"internal/cli/commands/..."},
		unless: []string{"internal/dataset/manifest", "internal/answer/hang"},
		why:    "the agent is small enough for every node: no DuckDB, no readers of datasets"},
	{from: []string{"internal/fleet/..."}, never: append([]string{"internal/record/...", "internal/cli/...", "internal/agent/..."}, loader...),
		unless: []string{"tracer/event"}, why: "the fleet's store and its reports are read where nothing is recorded"},
	{from: []string{"internal/benchmark/..."}, never: append([]string{"internal/record/...", "internal/cli/...", "internal/agent/..."},
		loader...),
		unless: []string{"tracer/event"}, why: "a benchmark records by the command line, as a user does, and its results are read anywhere"},
	{from: []string{"internal/cli"}, never: append([]string{"internal/dataset/...", "internal/answer/..."}, loader...),
		unless: []string{"tracer/event"},
		why:    "flags, usage and exit codes are the same for all binaries"},
	{from: []string{"internal/page/..."}, never: append([]string{"internal/record/...", "internal/cli/...", "internal/agent/..."}, loader...),
		unless: []string{"tracer/event"}, why: "the page only reads: nothing that a browser asks for may reach what needs root"},
	{from: []string{"internal/text/...", "internal/version", "internal/directory", "internal/flops"},
		never:  []string{"bpf", "symbolize/...", "tracer/...", "output/...", "internal/..."},
		unless: []string{"internal/text/...", "internal/version", "internal/directory", "internal/flops"},
		why:    "leaves depend on nothing of ours"},
	{from: []string{"cmd/...", "analysis", "internal/..."}, never: developers,
		why: "the product does not need what its developers run"},
}

// matches reports whether a pattern of go list names a package.
func matches(pattern, pkg string) bool {
	if parent, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == parent || strings.HasPrefix(pkg, parent+"/")
	}
	return pkg == pattern
}

func anyMatches(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, pkg) })
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
	err := filepath.WalkDir("../../..", func(name string, entry fs.DirEntry, err error) error {
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
	command.Dir = "../../.."
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

// broken lists the forbidden dependencies among packages. The standard library has packages called
// internal/… too: a name without a domain counts only if it is ours.
func broken(r rule, packages []goPackage) (found []string) {
	ours := map[string]bool{}
	for _, p := range packages {
		ours[p.ImportPath] = true
	}
	for _, p := range packages {
		if !anyMatches(r.from, p.ImportPath) || anyMatches(developers, p.ImportPath) {
			continue
		}
		for _, dep := range p.Deps {
			if (ours[dep] || strings.Contains(dep, ".")) && anyMatches(r.never, dep) && !anyMatches(r.unless, dep) {
				found = append(found, p.ImportPath+" reaches "+dep)
			}
		}
	}
	return found
}

func TestNoPackageReachesWhatItMustNot(t *testing.T) {
	packages := list(t, "./...")
	if len(packages) < 100 {
		t.Fatalf("only %d packages found", len(packages))
	}
	for _, r := range rules {
		for _, pattern := range slices.Concat(r.from, r.unless) {
			if !slices.ContainsFunc(packages, func(p goPackage) bool { return matches(pattern, p.ImportPath) }) {
				t.Errorf("no package is called %s: the rule about %q can't fail", pattern, r.from)
			}
		}
		for _, violation := range broken(r, packages) {
			t.Errorf("%s: %s", violation, r.why)
		}
	}
}

// A rule that is broken is noticed, also through packages between.
func TestABrokenRuleIsNoticed(t *testing.T) {
	packages := []goPackage{
		{ImportPath: "internal/answer/report", Deps: []string{"internal/model/steps", "tracer/event", "tracer/plan", "internal/abi"}},
		{ImportPath: "internal/model/steps", Deps: []string{"tracer/event"}}, {ImportPath: "tracer/plan"}, {ImportPath: "tracer/event"},
	}
	var found []string
	for _, r := range rules {
		found = append(found, broken(r, packages)...)
	}
	if want := []string{"internal/answer/report reaches tracer/plan"}; !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
}

// internal/ has a dozen houses: a new idea gets a room inside the one it belongs to.
func TestInternalHasADozenHouses(t *testing.T) {
	houses := []string{"agent", "answer", "benchmark", "cli", "dataset", "dev", "directory", "exchange", "fleet", "flops", "model", "page",
		"peaks", "record", "redact", "testkit", "text", "version"}
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !slices.Contains(houses, entry.Name()) {
			t.Errorf("internal/%s is a new house: it is a room in one of %q", entry.Name(), houses)
		}
	}
}

// loads reports whether a package is part of the loader.
func loads(pkg string) bool { return anyMatches(loader, pkg) && pkg != "tracer/event" }

func TestReadingADatasetNeedsNoLoader(t *testing.T) {
	reader := list(t, "-tags", "reader", "./cmd/ebpfprof")[0]
	if !slices.Contains(reader.Deps, "internal/dataset/query") {
		t.Fatal("the reader does not query: is this its list?")
	}
	for _, dep := range reader.Deps {
		if loads(dep) {
			t.Errorf("the build for reading imports %s", dep)
		}
	}
	tracer := list(t, "./cmd/ebpfprof")[0]
	if !slices.ContainsFunc(tracer.Deps, loads) {
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
	command.Dir = "../../.."
	command.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
