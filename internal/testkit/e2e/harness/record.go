package harness

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Unbudgeted are the flags that have every call recorded.
var Unbudgeted = []string{"--budget", "off"}

// Record runs a command under `ebpfprof run` and fails the test unless both end well.
func Record(t *testing.T, flags []string, argv ...string) *Recording {
	t.Helper()
	r, err := record(flags, argv...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.tracer.explain(t, r) })
	return r
}

// Shared is Record for a recording that several tests look at: it is made once.
func Shared(t *testing.T, flags []string, argv ...string) *Recording {
	t.Helper()
	key := strings.Join(slices.Concat(flags, argv), "\x00")
	made, _ := recordings.LoadOrStore(key, sync.OnceValues(func() (*Recording, error) { return record(flags, argv...) }))
	r, err := made.(func() (*Recording, error))()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// recordings has a sync.OnceValues for each shared recording.
var recordings sync.Map

func record(flags []string, argv ...string) (*Recording, error) {
	dataset, err := os.MkdirTemp(Scratch, "dataset-")
	if err != nil {
		return nil, err
	}
	line := slices.Concat([]string{Binary, "run", "--json", "--output", dataset}, flags, []string{"--"}, argv)
	c, err := launch(line...)
	if err != nil {
		return nil, err
	}
	defer c.Kill()
	if err := c.wellEnded(); err != nil {
		return nil, err
	}
	r := &Recording{Dataset: dataset, tracer: c}
	if r.Truth, err = c.Truth(); err != nil && !errors.Is(err, errNoTruth) {
		return nil, err
	}
	return r, r.summarize(c)
}

// Attached is a running `ebpfprof attach`.
type Attached struct {
	*Command
	Dataset string
}

// Attach begins to record processes and returns once the probes are in.
func Attach(t *testing.T, flags []string, pids ...int) *Attached {
	t.Helper()
	line := slices.Concat([]string{Binary, "attach"}, flags)
	for _, pid := range pids {
		line = append(line, "--pid", fmt.Sprint(pid))
	}
	return AttachWith(t, line...)
}

// AttachWith is Attach with a command line of the caller's, as it is but for --output.
func AttachWith(t *testing.T, argv ...string) *Attached {
	t.Helper()
	dataset, err := os.MkdirTemp(Scratch, "dataset-")
	if err != nil {
		t.Fatal(err)
	}
	a := &Attached{Start(t, append(argv, "--no-verdict", "--output", dataset)...), dataset}
	a.Ready(t)
	return a
}

// Ready waits until the probes are in.
func (a *Attached) Ready(t *testing.T) {
	t.Helper()
	a.Until(t, "word that it is attached", func(_ []string, errs string) bool { return strings.Contains(errs, "attached in ") })
}

// Finish waits for the tracer to end, which it does with the job.
func (a *Attached) Finish(t *testing.T) *Recording {
	t.Helper()
	if err := a.wellEnded(); err != nil {
		t.Fatal(err)
	}
	r := &Recording{Dataset: a.Dataset}
	t.Cleanup(func() { a.explain(t, r) })
	return r
}

// Interrupt is Ctrl-C, and Finish.
func (a *Attached) Interrupt(t *testing.T) *Recording {
	t.Helper()
	a.Process.Signal(os.Interrupt)
	return a.Finish(t)
}

// RecordReady records a job from the moment that it is ready to its end: every probe is
// in before, so that two such recordings are of the same calls.
func RecordReady(t *testing.T, flags []string, argv ...string) *Recording {
	t.Helper()
	return RecordReadyBeside(t, flags, func(int) {}, argv...)
}

// RecordReadyBeside starts something else just before the job goes on.
func RecordReadyBeside(t *testing.T, flags []string, beside func(pid int), argv ...string) *Recording {
	t.Helper()
	job := StartJob(t, argv...)
	pid := job.ReadyPID(t)
	tracing := Attach(t, flags, pid)
	beside(pid)
	job.GoOn(t)
	told := job.FinishJob(t)
	r := tracing.Finish(t)
	r.Truth = told
	return r
}
