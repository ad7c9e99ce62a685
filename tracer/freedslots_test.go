package tracer

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// slotsSink keeps what tells of slots.
type slotsSink struct {
	recordingSink
	gone      int
	libraries []Library
}

// Write implements event.Sink.
func (s *slotsSink) Write(b *event.Batch) error {
	s.libraries = append(s.libraries, b.Libraries...)
	for _, row := range b.Probes {
		if row.Gone {
			s.gone++
		}
	}
	return s.recordingSink.Write(b)
}

// A process loads more functions than the table has places, and unloads them: they are
// given back, no record is taken for another function's, and no call of the job beside
// it is lost.
func TestSlotsOfFilesThatNobodyMapsAreFreed(t *testing.T) {
	needKernel(t)
	const places = 80 // half of it for each process: four files of ten functions
	groups := nativeGroup("libcallee-plain", spec.ExitSites, callees)
	fresh := calleesOf("fresh")
	library, own := libraryToCopy(t)
	attacker := startLives(t, asNobody, "load", strconv.Itoa(1<<30), library, own)
	neighbour, calls := startCalls(t)
	sink := &slotsSink{}
	recordInto(t, sink, Options{
		PIDs: []int{attacker.Process.Pid, neighbour.Process.Pid}, Level: LevelWindow, Budget: Unlimited, catalog: append(groups, fresh),
		Limits: map[string]int{"probes": places}, times: times{unusedRest: 50 * time.Millisecond},
	}, func(s *Session, stop func()) {
		attacker.goOn()
		seen(t, s, "more places given back than there are", func() bool { return sink.gone > places })
		// Its files come and go: how many of their calls are seen is the machine's affair.
		seen(t, s, "call of a fresh file", func() bool { return countSpans(sink.spans)["fresh callee_plain"] > 0 })
		truth := calls()
		defer stop()
		seen(t, s, "call of the neighbour", func() bool {
			return countSpans(sink.spans)["callee_plain"] == truth["callee_plain"]
		})
	})
	fromFresh := 0
	for _, span := range sink.spans {
		if span.PID == int32(attacker.Process.Pid) {
			fromFresh++
		}
		if strings.HasPrefix(span.Call.Name, "fresh ") != (span.PID == int32(attacker.Process.Pid)) {
			t.Fatalf("a call of pid %d is said to be of %q", span.PID, span.Call.Name)
		}
		if span.PID == int32(attacker.Process.Pid) && span.Call.Name != "fresh callee_plain" {
			t.Fatalf("the attacker calls nothing but callee_plain, recorded is %q", span.Call.Name)
		}
	}
	t.Logf("%d places given back, %d calls of the fresh files recorded", sink.gone, fromFresh)
	if fromFresh == 0 {
		t.Error("no call of a fresh file was recorded")
	}
}

// calleesOf is the group of the functions in copies of the library whose names begin so.
func calleesOf(name string) spec.Group {
	group := spec.Group{Name: name, Tier: spec.Anchor}
	for symbol := range callees {
		group.Functions = append(group.Functions, spec.Function{
			Library: name + "-", Symbol: symbol, Exact: true, Layer: "native", Label: name + " " + symbol, Action: spec.Span, End: spec.ExitSites,
		})
	}
	return group
}

// libraryToCopy is a library that every user may read, and a directory for copies of it.
func libraryToCopy(t *testing.T) (library, own string) {
	t.Helper()
	directory := publicTemp(t)
	library, own = filepath.Join(directory, "callee.so"), filepath.Join(directory, "own")
	contents, err := os.ReadFile(filepath.Join(buildNative(t), "libcallee-plain.so"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(library, contents, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(own, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(own, 0o777); err != nil {
		t.Fatal(err)
	}
	return library, own
}

// A file for whose probes there is no room has them when another one has left, however
// long it has been mapped by then. That there was none is said once.
func TestAFileThatWasRefusedIsRecordedOnceThereIsRoom(t *testing.T) {
	needKernel(t)
	library, own := libraryToCopy(t)
	job := startLives(t, asNobody, "second", library, own)
	sink := &slotsSink{}
	count := func(what string) (n int) {
		for i := range sink.spans {
			if sink.spans[i].Call.Name == what {
				n++
			}
		}
		return n
	}
	second := func(path string) bool { return strings.HasPrefix(filepath.Base(path), "second-") }
	refused := func() (n int) {
		for _, w := range sink.warnings {
			if w.Kind == "attach" && second(w.Source) {
				n++
			}
		}
		return n
	}
	recordInto(t, sink, Options{
		PIDs: []int{job.Process.Pid}, Level: LevelWindow, Budget: Unlimited, catalog: []spec.Group{calleesOf("first"), calleesOf("second")},
		Limits: map[string]int{"probes": 2 * len(callees)}, // half of it is a process's: one file
		times:  times{unusedRest: 50 * time.Millisecond},
	}, func(s *Session, stop func()) {
		defer stop()
		job.goOn()
		seen(t, s, "call of the first", func() bool { return count("first callee_plain") > 0 })
		job.goOn()
		seen(t, s, "refusal of the second", func() bool { return refused() > 0 })
		job.goOn()
		seen(t, s, "call of the second", func() bool { return count("second callee_plain") > 0 })
	})
	libraries := 0
	for _, row := range sink.libraries {
		if second(row.Path) {
			libraries++
		}
	}
	if refused() != 1 || libraries != 1 || sink.gone != len(callees) {
		t.Errorf("that it was refused is said %d times, and it has %d rows; %d places were given back, want %d", refused(), libraries, sink.gone,
			len(callees))
	}
}

// startCalls starts a job that waits to make its calls, and says what they were.
func startCalls(t *testing.T) (job *exec.Cmd, calls func() map[string]int) {
	t.Helper()
	job = exec.Command(filepath.Join(buildNative(t), "calls-plain"), "200", "wait")
	stdin, _ := job.StdinPipe()
	stdout, _ := job.StdoutPipe()
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { job.Process.Kill(); job.Wait() })
	lines := bufio.NewScanner(stdout)
	lines.Scan() // ready
	return job, func() map[string]int {
		io.WriteString(stdin, "go\n")
		lines.Scan()
		var said struct{ Truth nativeTruth }
		if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
			t.Fatalf("the job said %q: %v", lines.Text(), err)
		}
		return said.Truth.Calls
	}
}
