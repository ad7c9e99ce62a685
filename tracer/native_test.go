package tracer

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// The programs of testdata/native have the shapes that probes meet, and say
// what they did. They are traced here with groups of their own, so that every
// shape, site and way of attaching is checked against the truth.

// nativeTruth is what a program says at its end.
type nativeTruth struct {
	Calls map[string]int `json:"calls"`
	Threw map[string]int `json:"threw"`
}

// buildNative builds the programs and returns their directory.
func buildNative(t *testing.T) string {
	t.Helper()
	directory := filepath.Join("..", "testdata", "native")
	if out, err := exec.Command("make", "-s", "-C", directory).CombinedOutput(); err != nil {
		t.Fatalf("building the native programs: %v\n%s", err, out)
	}
	return filepath.Join(directory, "build")
}

// traceNative runs a program under a session from its first call on.
func traceNative(t *testing.T, program string, options Options) (nativeTruth, *recordingSink, *Session) {
	t.Helper()
	return traceCommand(t, options, nil, filepath.Join(buildNative(t), program), "200", "wait")
}

// traceCommand is traceNative for a whole command line. between is what happens
// when the probes are in, and the program still waits.
func traceCommand(t *testing.T, options Options, between func(*Session), argv ...string) (nativeTruth, *recordingSink, *Session) {
	t.Helper()
	needKernel(t)
	job := exec.Command(argv[0], argv[1:]...)
	stdin, err := job.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := job.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	defer job.Process.Kill()
	lines := bufio.NewScanner(stdout)
	lines.Scan() // ready

	sink := &recordingSink{}
	options.PIDs, options.Follow, options.BufferBytes = []int{job.Process.Pid}, true, 4<<20
	if options.Budget == 0 {
		options.Budget = Unlimited
	}
	session, err := Open(t.Context(), options, sink)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	if between != nil {
		between(session)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- session.Run(ctx) }()
	io.WriteString(stdin, "go\n")
	lines.Scan()
	var said struct{ Truth nativeTruth }
	if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
		t.Fatalf("%s said %q: %v", argv, lines.Text(), err)
	}
	if err := job.Wait(); err != nil {
		t.Errorf("%s ended with %v", argv, err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return said.Truth, sink, session
}

// nativeGroup has one function for each symbol of a library of testdata/native.
func nativeGroup(library string, end spec.End, symbols map[string]string) []spec.Group {
	group := spec.Group{Name: "native", Tier: spec.Anchor}
	for label, symbol := range symbols {
		group.Functions = append(group.Functions, spec.Function{
			Library: library, Symbol: symbol, Exact: true, Layer: "native", Label: label, Action: spec.Span, End: end,
		})
	}
	return []spec.Group{group}
}

func cSymbols(truth ...string) map[string]string {
	symbols := map[string]string{}
	for _, name := range truth {
		symbols[name] = name
	}
	return symbols
}

var callees = cSymbols("callee_plain", "callee_protected", "callee_branchy", "callee_loop_at_entry", "callee_recursive",
	"callee_alloca", "callee_tail", "callee_indirect_tail", "callee_many", "callee_message")

func countSpans(spans []Span, status ...Status) map[string]int {
	counts := map[string]int{}
	for _, s := range spans {
		if len(status) == 0 || s.Status == status[0] {
			counts[s.Call.Name]++
		}
	}
	return counts
}

var attachWays = map[string]bool{"multi": false, "perf": true}

func TestEveryCallOfEveryShapeIsASpan(t *testing.T) {
	for way, perf := range attachWays {
		for _, variant := range []string{"plain", "protected", "cet", "both"} {
			for endName, end := range map[string]spec.End{"exit": spec.ExitSites, "return": spec.Return} {
				t.Run(fmt.Sprintf("%s/%s/%s", way, variant, endName), func(t *testing.T) {
					groups := nativeGroup("libcallee-"+variant, end, callees)
					truth, sink, session := traceNative(t, "calls-"+variant, Options{PerfEvents: perf, catalog: groups})
					checkShapes(t, truth, sink, session)
				})
			}
		}
	}
}

func checkShapes(t *testing.T, truth nativeTruth, sink *recordingSink, session *Session) {
	t.Helper()
	counts, exact := countSpans(sink.spans), countSpans(sink.spans, StatusOK)
	for _, p := range session.probes.All() {
		name := p.Planned.Call.Name
		if !p.Attached() {
			// A function whose first instruction is the head of a loop has no site.
			if name != "callee_loop_at_entry" {
				t.Errorf("%s is not attached: %s", name, p.Planned.Reason())
			}
			continue
		}
		if counts[name] != truth.Calls[name] {
			t.Errorf("%s: %d spans, %d calls", name, counts[name], truth.Calls[name])
		}
		ends := p.Planned.Return || len(p.Planned.Exits) > 0
		if ends && exact[name] != truth.Calls[name] {
			t.Errorf("%s: %d exact ends of %d calls (%v)", name, exact[name], truth.Calls[name], p.Planned.Exits)
		}
		if !ends && exact[name] != 0 {
			t.Errorf("%s has no end site, but %d spans say ok", name, exact[name])
		}
		if name == "callee_alloca" && ends {
			// internal/dev/matrix reads it
			t.Logf("calls with alloca: %d of %d ended where they did", exact[name], truth.Calls[name])
		}
		if name == "callee_alloca" && !ends && runtime.GOARCH == "arm64" {
			t.Errorf("%s has no end site: %s", name, p.Planned.Reason())
		}
	}
}

func TestExceptionsAreMarkedAndNothingElse(t *testing.T) {
	thrower := map[string]string{
		"maybe": "_ZN7thrower5maybeEl", "nested": "_ZN7thrower6nestedEll",
		"shielded": "_ZN7thrower8shieldedEl", "Worker::work": "_ZN7thrower6Worker4workEl",
	}
	for way, perf := range attachWays {
		for _, variant := range []string{"plain", "protected", "cet", "both"} {
			t.Run(way+"/"+variant, func(t *testing.T) {
				groups := nativeGroup("libthrower-"+variant, spec.ExitSites, thrower)
				truth, sink, session := traceNative(t, "throws-"+variant, Options{PerfEvents: perf, catalog: groups})
				calls, threw := countSpans(sink.spans), countSpans(sink.spans, StatusThrew)
				entries, ends := 0, 0
				for _, p := range session.probes.All() {
					name := p.Planned.Call.Name
					if len(p.Planned.Exits) > 0 {
						c, err := session.kernel.Count(p.Index)
						if err != nil {
							t.Fatal(err)
						}
						entries, ends = entries+int(c.Entries), ends+int(c.Exits)+threw[name]
					}
					if calls[name] != truth.Calls[name] {
						t.Errorf("%s: %d spans, %d calls", name, calls[name], truth.Calls[name])
					}
					if len(p.Planned.Exits) > 0 && threw[name] != truth.Threw[name] {
						t.Errorf("%s: %d marked threw, %d thrown", name, threw[name], truth.Threw[name])
					}
					if len(p.Planned.Exits) == 0 && threw[name] != 0 {
						t.Errorf("%s has no exit site, but %d spans say threw", name, threw[name])
					}
				}
				// internal/dev/matrix reads it
				t.Logf("throwing job: %d of %d entries ended by an exit or an exception", ends, entries)
				if entries == 0 || ends != entries {
					t.Errorf("%d entries, %d exits and exceptions", entries, ends)
				}
			})
		}
	}
}

func TestArgumentsComeFromRegistersStackAndMemory(t *testing.T) {
	groups := nativeGroup("libcallee-both", spec.Return, cSymbols("callee_many", "callee_message"))
	for i := range groups[0].Functions {
		f := &groups[0].Functions[i]
		if f.Label == "callee_many" {
			f.Values = []spec.Value{
				spec.Reg(spec.FieldStream, 5),
				{Field: spec.FieldBytes, Stack: true, Index: 0},
				{Field: spec.FieldContext, Stack: true, Index: 1},
			}
			if runtime.GOARCH == "arm64" { // which passes eight in registers
				f.Values[1], f.Values[2] = spec.Reg(spec.FieldBytes, 6), spec.Reg(spec.FieldContext, 7)
			}
			continue
		}
		f.Values = []spec.Value{spec.Mem(spec.FieldBytes, 0, 32), spec.Reg(spec.FieldStream, 1)}
		f.Text, f.TextArg = spec.CString, 0
		f.Name = spec.Fixed
	}
	_, sink, _ := traceNative(t, "calls-both", Options{catalog: groups})
	calls := int64(0)
	for _, s := range sink.spans {
		d := s.Detail
		if d == nil || d.Bytes == nil || d.Stream == nil {
			t.Fatalf("%s has no arguments: %+v", s.Call.Name, d)
		}
		switch s.Call.Name {
		case "callee_many": // (1, 2, 3, 4, 5, 6, 7, i)
			if *d.Stream != 6 || *d.Bytes != 7 || d.Context == nil || *d.Context != calls {
				t.Fatalf("call %d of callee_many: got %d, %d, %v; want 6, 7, %d", calls, *d.Stream, *d.Bytes, d.Context, calls)
			}
			calls++
		case "callee_message": // numbers[3] is 4, the struct 40 bytes
			if *d.Bytes != 4 || *d.Stream != 40 {
				t.Fatalf("callee_message: got %d, %d; want 4, 40", *d.Bytes, *d.Stream)
			}
		}
	}
	if calls != 200 {
		t.Errorf("%d calls of callee_many, want 200", calls)
	}
}
