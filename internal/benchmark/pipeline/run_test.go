package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/numbers"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/reference"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// recording is one of thirty steps of 10 ms.
func recording(t *testing.T) string {
	j := scripted.New()
	for range 30 {
		j.Load(1_000_000)
		j.Op("aten::mm", 7_000_000)
		j.Backward(1_000_000)
		j.Optimize(1_000_000)
	}
	return scripted.Write(t, j)
}

// runner takes the place of the recorder with one that runs the command, leaves a recording that was made before, and ends
// with the summary that run --json prints.
func runner(t *testing.T) *Runner {
	script := `cp -r "$0" "$1"; shift; "$@"; code=$?; printf '{\n  "dataset": "x",\n  "lines": "loss 77"\n}\n'; exit $code`
	return &Runner{Record: []string{"/bin/sh", "-c", script, recording(t), OutputPlace}, Keep: true}
}

// shell is a case of a line for a shell.
func shell(line string) *Case {
	return &Case{Name: "job", Base: "job", System: "generic", Partition: "default", Environ: "builtin", Command: []string{"/bin/sh",
		"-c", line}}
}

func one(t *testing.T, r *Runner, c *Case) *Outcome {
	t.Helper()
	o, err := r.Run(context.Background(), c, t.TempDir(), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestARunGoesThroughItsStages(t *testing.T) {
	c := shell("echo loss: 2.5; echo speed 12.5; echo speed 13.5")
	c.Setup, c.Build, c.Cleanup = []string{"echo $WHO > who"}, []string{"test -f who"}, []string{"cp who cleaned"}
	c.Dir, c.Env = t.TempDir(), map[string]string{"WHO": "me"}
	c.Sanity.Find = []*regexp.Regexp{regexp.MustCompile("loss")}
	c.Variables = []Variable{
		{Name: "speed", Unit: "x", Pattern: regexp.MustCompile(`speed (\S+)`), Take: "mean"},
		{Name: "spans", SQL: "SELECT count(*) FROM span"}, {Name: "bad", SQL: "DROP TABLE span"},
		{Name: "none", Pattern: regexp.MustCompile(`x(\d)`)},
	}
	c.References = map[string]reference.Reference{numbers.StepTime: {Value: 10, Lower: new(-0.1), Upper: new(0.1)}}
	o := one(t, runner(t), c)
	if o.Result != reference.Pass || o.Stage != "" || o.Reason != "" {
		t.Errorf("%s in %q: %s", o.Result, o.Stage, o.Reason)
	}
	var ran []string
	for _, s := range o.Stages {
		ran = append(ran, s.Name)
	}
	if !slices.Equal(ran, Stages()) {
		t.Errorf("stages %q", ran)
	}
	if text, err := os.ReadFile(filepath.Join(c.Dir, "cleaned")); string(text) != "me\n" {
		t.Errorf("cleanup left %q, %v", text, err)
	}
	for name, want := range map[string]float64{"speed": 13, "spans": 120, numbers.StepTime: 10, numbers.Loss: 2.5} {
		if n, _ := numbers.Find(o.Numbers, name); n.Value == nil || *n.Value != want {
			t.Errorf("%s: %+v, want %v", name, n, want)
		}
	}
	for _, name := range []string{"bad", "none"} {
		if n, _ := numbers.Find(o.Numbers, name); n.Value != nil || n.Why == "" {
			t.Errorf("%s: %+v", name, n)
		}
	}
	if len(o.Periods) == 0 || o.Recording == "" {
		t.Errorf("%d periods, recording %q", len(o.Periods), o.Recording)
	}
}

func TestWhatFailsSaysWhereAndWhy(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(*Case)
		result reference.Result
		stage  string
		reason string
	}{
		{"setup", func(c *Case) { c.Setup = []string{"exit 3"} }, reference.Fail, "setup", "exit status 3"},
		{"exit code", func(c *Case) { c.Command[2] = "echo no memory >&2; exit 7" }, reference.Fail, "sanity", "exit code is 7: no memory"},
		{"signal", func(c *Case) { c.Command[2] = "kill -9 $$" }, reference.Fail, "sanity", "exit code is 137"},
		{"not printed", func(c *Case) { c.Sanity.Find = []*regexp.Regexp{regexp.MustCompile("done")} }, reference.Fail, "sanity",
			`matches "done"`},
		{"printed", func(c *Case) { c.Sanity.Absent = []*regexp.Regexp{regexp.MustCompile("hel+o")} }, reference.Fail, "sanity",
			`printed "hello"`},
		{"expected", func(c *Case) { c.Command[2], c.Sanity.Expected = "exit 7", "bug 12" }, reference.XFail, "sanity", "bug 12"},
		{"unexpected pass", func(c *Case) { c.Sanity.Expected = "bug 12" }, reference.XPass, "sanity", "though it was expected to fail"},
		{"too long", func(c *Case) { c.Command[2], c.TimeLimit = "exec sleep 60", 300*time.Millisecond }, reference.Fail, "run",
			"time limit of 300ms"},
	} {
		job := shell("echo hello")
		c.change(job)
		o := one(t, runner(t), job)
		if o.Result != c.result || o.Stage != c.stage || !strings.Contains(o.Reason, c.reason) {
			t.Errorf("%s: %s in %q: %s; want %s in %s: %s", c.what, o.Result, o.Stage, o.Reason, c.result, c.stage, c.reason)
		}
	}
}

func TestNumbersAreHeldAgainstTheirReferences(t *testing.T) {
	of := func(value float64, expected string) reference.Reference {
		return reference.Reference{Value: value, Lower: new(-0.1), Upper: new(0.1), Expected: expected}
	}
	for _, c := range []struct {
		name    string
		ref     reference.Reference
		result  reference.Result
		certain bool
		reason  string
	}{
		{"step_time", of(10, ""), reference.Pass, true, ""},
		{"step_time", of(9.5, ""), reference.Pass, false, ""}, // its interval reaches over the bound
		{"step_time", of(20, ""), reference.Fail, true, "step_time=10 ms, expected 20 (l=18, u=22)"},
		{"step_time", of(20, "slow disk"), reference.XFail, true, "as expected: slow disk"},
		{"step_time", of(10, "slow disk"), reference.XPass, true, "unexpectedly"},
		{"power", of(1, ""), reference.Fail, true, "no value: no meter"},
		{"nonsense", of(1, ""), reference.Fail, true, "there is no number of that name"},
	} {
		x := &execution{c: &Case{References: map[string]reference.Reference{c.name: c.ref}}, o: &Outcome{Checked: map[string]Checked{},
			Numbers: []numbers.Number{{Name: "step_time", Unit: "ms", Value: new(10.0), Lo: new(9.5), Hi: new(10.5)},
				{Name: "power", Why: "no meter"}}}}
		err := x.check()
		if x.o.Result != c.result || x.o.Checked[c.name].Certain != c.certain || (err == nil) != (c.reason == "") || err != nil &&
			!strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s against %+v: %s, %v, certain %v", c.name, c.ref, x.o.Result, err, x.o.Checked[c.name].Certain)
		}
	}
}

func TestARecorderThatCannotRecordIsQuoted(t *testing.T) {
	r := &Runner{Record: []string{"/bin/sh", "-c", "echo 'needs root: use sudo' >&2; exit 125", OutputPlace}}
	if o := one(t, r, shell("true")); o.Stage != "run" || !strings.Contains(o.Reason, "needs root: use sudo") {
		t.Errorf("%s in %q: %s", o.Result, o.Stage, o.Reason)
	}
}

func TestTheSummaryIsNotTheJobsOutput(t *testing.T) {
	for text, want := range map[string]string{
		"loss 1\n{\n  \"dataset\": \"d\"\n}\n":           "loss 1\n",
		"{\n  \"dataset\": \"d\"\n}\n":                   "",
		"loss 1\n{\n  \"other\": 1\n}\n":                 "loss 1\n{\n  \"other\": 1\n}\n",
		"{\n  \"a\": 1\n}\n{\n  \"dataset\": \"d\"\n}\n": "{\n  \"a\": 1\n}\n",
		"no newline{\n  \"dataset\": \"d\"\n}":           "no newline{\n  \"dataset\": \"d\"\n}",
	} {
		if got := withoutSummary(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// all runs cases under a policy and returns what each run gave.
func all(t *testing.T, p Policy, cases ...*Case) (outcomes []*Outcome, err error) {
	t.Helper()
	dir := t.TempDir()
	place := func(run string) (string, error) {
		path := filepath.Join(dir, run)
		return path, os.Mkdir(path, 0o700)
	}
	err = runner(t).All(context.Background(), cases, p, place, func(o *Outcome) error {
		outcomes = append(outcomes, o)
		return nil
	})
	return outcomes, err
}

func TestCasesRunAsOftenAsThePolicySays(t *testing.T) {
	counter := filepath.Join(t.TempDir(), "ran")
	// An expected failure is none, and nothing is measured of it.
	good, bad := shell("echo x >> "+counter+"; exit 1"), shell("exit 1")
	good.Sanity.Expected = "known"
	outcomes, err := all(t, Policy{Warmup: 1, Repeat: 2, Reruns: 1}, good)
	text, _ := os.ReadFile(counter)
	if err != nil || len(outcomes) != 4 || strings.Count(string(text), "x") != 5 || outcomes[3].Repeat != 3 {
		t.Errorf("%d outcomes, ran %q, %v", len(outcomes), text, err)
	}
	outcomes, err = all(t, Policy{Repeat: 1, MaxRetries: 2}, bad, good)
	if err != nil || len(outcomes) != 4 || outcomes[2].Attempt != 3 || outcomes[2].Repeat != 0 {
		t.Errorf("%d outcomes with retries, %v", len(outcomes), err)
	}
	outcomes, err = all(t, Policy{Repeat: 5, MaxFailures: 2}, bad, good)
	if !errors.Is(err, ErrTooManyFailures) || len(outcomes) != 2 {
		t.Errorf("%d outcomes with two failures allowed, %v", len(outcomes), err)
	}
	outcomes, err = all(t, Policy{Repeat: 1, Duration: time.Nanosecond}, good)
	if err != nil || len(outcomes) != 1 {
		t.Errorf("%d outcomes in no time, %v", len(outcomes), err)
	}
}

// TestTheUserEndsABenchmark: what runs is ended, and nothing is started any more.
func TestTheUserEndsABenchmark(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	started := filepath.Join(t.TempDir(), "started")
	go func() {
		for {
			if _, err := os.Stat(started); err == nil {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	r := runner(t)
	r.Record[2] = `shift; exec "$@"`
	_, err := r.Run(ctx, shell("touch "+started+"; exec sleep 600"), t.TempDir(), 0, 1)
	if !errors.Is(err, ErrAborted) {
		t.Errorf("%v", err)
	}
}
