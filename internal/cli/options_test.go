package cli

import (
	"errors"
	"fmt"
	"math"
	"os/exec"
	"testing"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

func TestCountersAreReadAtAnyPaceThatIsCheap(t *testing.T) {
	for text, want := range map[string]time.Duration{"1s": time.Second, "250ms": 250 * time.Millisecond, "off": 0, "2m": 2 * time.Minute} {
		if got, err := parseCounters(text); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "0s", "-1s", "99ms", "on", "1 s"} {
		if got, err := parseCounters(text); err == nil {
			t.Errorf("%q is taken for %s", text, got)
		}
	}
}

func TestSizesAreRoundedUpToAPowerOfTwoPages(t *testing.T) {
	for text, want := range map[string]int{
		"1": 4096, "4096": 4096, "4097": 8192, "64KiB": 64 << 10, "64 KiB": 64 << 10, "64K": 64 << 10, "64kB": 64 << 10,
		"65537B": 128 << 10, "1.5MiB": 2 << 20, "64MiB": 64 << 20, "64MB": 64 << 20, "1GiB": 1 << 30, "1e3K": 1 << 20,
	} {
		if got, err := parseBytes(text); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "0", "-1", "2GiB", "1TiB", "lots", "NaN", "Inf", "1e30", "64MiBs"} {
		if got, err := parseBytes(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestBudgets(t *testing.T) {
	for _, c := range []struct {
		text  string
		level tracer.Level
		want  float64
	}{
		{"", tracer.LevelAnchor, 0.01}, {"", tracer.LevelWindow, 0.05}, {"", tracer.LevelDeep, 0},
		{"off", tracer.LevelAnchor, 0}, {"5%", tracer.LevelDeep, 0.05}, {"5", tracer.LevelWindow, 0.05},
		{"0.5%", tracer.LevelWindow, 0.005}, {"100%", tracer.LevelWindow, 1},
	} {
		if got, err := parseBudget(c.text, c.level); err != nil || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%q at %s: %v, %v, want %v", c.text, c.level, got, err, c.want)
		}
	}
	for _, text := range []string{"0", "-1%", "101%", "NaN", "Inf", "%", "none", "5%%"} {
		if got, err := parseBudget(text, tracer.LevelWindow); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestExitCodesAreTheDocumentedOnes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("anything"), ExitFailed},
		{usagef("a mistake"), ExitUsage},
		{fmt.Errorf("x: %w", tracer.ErrUnknownGroup), ExitUsage},
		{fmt.Errorf("x: %w", tracer.ErrNotPermitted), ExitNotPermitted},
		{&process.Error{PID: 1, Reason: process.ErrPermission}, ExitNotPermitted},
		{&process.Error{PID: 1, Reason: process.ErrStatic}, ExitFailed},
		{&process.Error{PID: 1, Reason: process.ErrUnsupported}, ExitFailed},
		{fmt.Errorf("x: %w", tracer.ErrUnsupported), ExitUnsupported},
		{fmt.Errorf("%w: idle", ErrNothingCaptured), ExitNothing},
		{urfave.Exit("x", ExitUsage), ExitUsage},
		{cannotRun("x", exec.ErrNotFound), ExitFailed},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1002003: "1,002,003", 12_345_678: "12.3 M"} {
		if got := count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 3 << 20: "3.0 MiB", 5 << 29: "2.50 GiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestPathsInHintsCanBePasted(t *testing.T) {
	for _, path := range []string{"plain-1.d/x_y", "with space", "it's", `"quoted"`, "$HOME", "a;b", "ümlaut"} {
		out, err := exec.Command("sh", "-c", "printf %s "+quote(path)).Output()
		if err != nil || string(out) != path {
			t.Errorf("%s becomes %s, %v", path, out, err)
		}
	}
}

func TestALineIsCutToTheTerminal(t *testing.T) {
	for width, want := range map[int]string{3: "aµ", 4: "aµc", 80: "aµc", 0: ""} {
		if got := truncate("aµc", width); got != want {
			t.Errorf("width %d: %q, want %q", width, got, want)
		}
	}
}
