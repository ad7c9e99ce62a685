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

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// placesSink keeps what tells of places.
type placesSink struct {
	recordingSink
	gone int
}

func (s *placesSink) Probes(rows []Probe) error {
	for _, row := range rows {
		if row.Gone {
			s.gone++
		}
	}
	return nil
}

// A process loads more functions than the table has places, and unloads them: they are
// given back, no record is taken for another function's, and no call of the job beside
// it is lost.
func TestPlacesOfFilesThatNobodyMapsAreGivenBack(t *testing.T) {
	needKernel(t)
	const places = 80 // half of it for each process: four files of ten functions
	groups := nativeGroup("libcallee-plain", catalog.ExitSites, callees)
	fresh := catalog.Group{Name: "fresh", Tier: catalog.Anchor}
	for name := range callees {
		fresh.Functions = append(fresh.Functions, catalog.Function{
			Library: "fresh-", Symbol: name, Exact: true, Layer: "native", Label: "fresh " + name, Action: catalog.Span, End: catalog.ExitSites,
		})
	}
	directory := publicTemp(t)
	library := filepath.Join(directory, "callee.so")
	contents, err := os.ReadFile(filepath.Join(buildNative(t), "libcallee-plain.so"))
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(directory, "own")
	if err := os.Mkdir(own, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(own, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(library, contents, 0o644); err != nil {
		t.Fatal(err)
	}
	attacker := startLives(t, asNobody, "load", strconv.Itoa(1<<30), library, own)
	neighbour, calls := startCalls(t)
	sink := &placesSink{}
	recordInto(t, sink, Options{
		PIDs: []int{attacker.Process.Pid, neighbour.Process.Pid}, Level: LevelWindow, Budget: Unlimited, catalog: append(groups, fresh),
		Limits: map[string]int{"probes": places}, unusedRest: 50 * time.Millisecond,
	}, func(s *Session, stop func()) {
		attacker.goOn()
		seen(t, s, "more places given back than there are", func() bool { return sink.gone > places })
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
