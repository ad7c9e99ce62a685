package capture

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/record/recorder"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

func TestExitCodesAreTheDocumentedOnes(t *testing.T) {
	Commands(recorder.Reading{})
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("anything"), cli.ExitFailed},
		{cli.Usagef("a mistake"), cli.ExitUsage},
		{fmt.Errorf("x: %w", tracer.ErrUnknownGroup), cli.ExitUsage},
		{fmt.Errorf("x: %w", features.ErrNotPermitted), cli.ExitNotPermitted},
		{&process.Error{PID: 1, Reason: process.ErrPermission}, cli.ExitNotPermitted},
		{&process.Error{PID: 1, Reason: process.ErrStatic}, cli.ExitFailed},
		{&process.Error{PID: 1, Reason: process.ErrUnsupported}, cli.ExitFailed},
		{fmt.Errorf("x: %w", features.ErrUnsupported), cli.ExitUnsupported},
		{fmt.Errorf("%w: idle", recorder.ErrNothingCaptured), cli.ExitNothing},
		{urfave.Exit("x", cli.ExitUsage), cli.ExitUsage},
	} {
		if got := cli.ExitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

func TestCompletionKnowsCommandsFlagsAndValues(t *testing.T) {
	commands := Commands(recorder.Reading{})
	for _, c := range []struct {
		words []string
		want  []string
	}{
		{nil, []string{"attach", "run", "top", "probes", "doctor", "schema", "completion"}},
		{[]string{"at"}, []string{"attach"}},
		{[]string{"attach", "--bu"}, []string{"--budget", "--buffer-size"}},
		{[]string{"attach", "--attach"}, nil}, // hidden
		{[]string{"attach", "--level", ""}, []string{"anchor", "window", "deep"}},
		{[]string{"attach", "--level", "w"}, []string{"window"}},
		{[]string{"attach", "--json", "--le"}, []string{"--level"}},
		{[]string{"attach", "--output", ""}, nil}, // a file name
		{[]string{"run", "--", "--le"}, nil},
	} {
		if got := cli.Complete("ebpfprof", c.words, commands...); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.words, got, c.want)
		}
	}
}
