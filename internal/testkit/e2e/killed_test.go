package e2e

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
	"github.com/ebpfprof/ebpfprof/output/columnfile"
)

// timesKilled is how often the tracer is killed: thirty times before a merge, as often as
// EBPFPROF_KILLS says in the soak.
func timesKilled() int {
	if n, err := strconv.Atoi(os.Getenv("EBPFPROF_KILLS")); err == nil {
		return n
	}
	return 30
}

// stretch is a part of a tracer's life, in which it is killed at a random instant.
type stretch struct {
	name  string
	flags []string
	begin func(*testing.T, *victim)
	// length is how long it is taken to be; it follows what the tracers take, where a
	// whole one is seen.
	length time.Duration
}

// victim is a tracer that is to be killed, at an instant of a stretch.
type victim struct {
	*harness.Attached
	started time.Time
}

// ofALife are the parts of a tracer's life. How long it takes to start is measured with
// each that is let live until it is attached.
func ofALife() (starting, planning *stretch, all []*stretch) {
	start := func(*testing.T, *victim) {}
	starting = &stretch{"starting", nil, start, time.Second}
	planning = &stretch{"planning", nil, start, 3 * time.Second}
	return starting, planning, []*stretch{
		starting,
		{"recording", nil, func(t *testing.T, v *victim) { v.Ready(t) }, 300 * time.Millisecond},
		planning,
		{"rotating", nil, func(t *testing.T, v *victim) {
			v.Ready(t)
			for end := time.Now().Add(harness.Patience); !hasFiles(t, v.Dataset+"/span"); time.Sleep(5 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("no file of spans was closed in %s", harness.Patience)
				}
			}
		}, 200 * time.Millisecond},
		{"in slices", []string{"--budget", "5%"}, func(t *testing.T, v *victim) { v.Ready(t) }, 500 * time.Millisecond},
		{"ending", nil, func(t *testing.T, v *victim) {
			v.Ready(t)
			v.Process.Signal(os.Interrupt)
		}, 200 * time.Millisecond},
	}
}

// The tracer is killed at random instants, thirty times (make soak: a thousand): while it starts, plans,
// attaches, records, attaches slices, rotates, ends. The job throws through its probes,
// forks, and checks itself. Nobody is harmed, no probe is left, and what each recording
// had closed can be read.
func TestATracerKilledAtAnyInstantHarmsNobody(t *testing.T) {
	harness.Debian.Beside(t)
	job := harness.StartJob(t, harness.Debian.Job("throwfork.py")...)
	texts := functionTexts(t, job.Process.Pid, torchLibrary, probedFunctions...)
	job.GoOn(t)
	cache := filepath.Join(harness.Scratch, "killed-cache")
	starting, planning, stretches := ofALife()
	killed, closed := map[string]int{}, 0
	for kills := 0; kills < timesKilled(); {
		in := stretches[kills%len(stretches)]
		v := &victim{started: time.Now()}
		v.Attached = launchVictim(t, in, cache, job.Process.Pid)
		in.begin(t, v)
		if attachedAt := time.Since(v.started); in != starting && in != planning {
			starting.length, planning.length = attachedAt, 2*attachedAt
		}
		time.Sleep(rand.N(in.length))
		v.Process.Signal(syscall.SIGKILL)
		switch code, err := v.Wait(); {
		case code == -int(syscall.SIGKILL):
			killed[in.name]++
			kills++
		case in.name == "ending" && (code == 0 || code == 5): // it was faster; 5: no call yet
			in.length = max(in.length*9/10, 10*time.Millisecond)
		default:
			t.Fatalf("tracer %d ended by itself: %d, %v\n%s", kills, code, err, v.Transcript())
		}
		select {
		case <-job.Done():
			t.Fatalf("the job ended after %d tracers, %v: %s", kills, killed, job.Transcript())
		default:
		}
		for _, x := range texts {
			x.becomes(t, false)
		}
		if canBeRead(t, v.Dataset) {
			closed++
		}
		os.RemoveAll(v.Dataset)
	}
	job.Process.Signal(syscall.SIGTERM)
	told := job.FinishJob(t) // and it checked itself
	if told.Steps == 0 {
		t.Error("the job made no step")
	}
	if closed < killed["rotating"] {
		t.Errorf("%d recordings had closed files of spans, and %d were killed after that", closed, killed["rotating"])
	}
	t.Logf("%v killed, %d left closed files of spans, %d steps of the job", killed, closed, told.Steps)
}

// launchVictim starts a tracer. Those that are killed while they plan have a cache of
// their own, in half of the cases with what the killed ones before left in it.
func launchVictim(t *testing.T, in *stretch, cache string, pid int) *harness.Attached {
	t.Helper()
	line := []string{harness.Binary, "attach", "--rotate", "100ms", "--pid", fmt.Sprint(pid)}
	if in.name == "planning" {
		if rand.N(2) == 0 {
			os.RemoveAll(cache)
		}
		if err := os.MkdirAll(cache, 0o700); err != nil {
			t.Fatal(err)
		}
		line = append([]string{"env", "XDG_CACHE_HOME=" + cache}, line...)
	}
	dataset, err := os.MkdirTemp(harness.Scratch, "killed-")
	if err != nil {
		t.Fatal(err)
	}
	if in.flags == nil {
		line = append(line, "--budget", "off")
	}
	line = append(append(line, in.flags...), "--output", dataset)
	return &harness.Attached{Command: harness.Start(t, line...), Dataset: dataset}
}

// canBeRead checks every file that a killed tracer left under its name, and reports
// whether there are spans among them, which are then counted by `query`.
func canBeRead(t *testing.T, dataset string) bool {
	t.Helper()
	var spans int64
	err := filepath.WalkDir(dataset, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") || filepath.Ext(path) != ".parquet" {
			return err
		}
		summary, err := columnfile.Check(path)
		if filepath.Base(filepath.Dir(path)) == "span" && err == nil {
			spans += summary.Rows
		}
		return err
	})
	if err != nil {
		t.Errorf("what a killed tracer left is not whole: %v", err)
	}
	if spans == 0 {
		return false
	}
	r := &harness.Recording{Dataset: dataset}
	if n := r.Number(t, "SELECT count(*) FROM span"); n != spans {
		t.Errorf("%d spans can be read of a killed recording, its files have %d", n, spans)
	}
	return true
}
