package recorder

import (
	"math"
	"os/exec"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer"
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
		{"", tracer.LevelAnchor, 0.01}, {"", tracer.LevelWindow, 0.05}, {"", tracer.LevelDeep, tracer.Unlimited},
		{"off", tracer.LevelAnchor, tracer.Unlimited}, {"5%", tracer.LevelDeep, 0.05}, {"5", tracer.LevelWindow, 0.05},
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

func TestPathsInHintsCanBePasted(t *testing.T) {
	for _, path := range []string{"plain-1.d/x_y", "with space", "it's", `"quoted"`, "$HOME", "a;b", "ümlaut"} {
		out, err := exec.Command("sh", "-c", "printf %s "+quote(path)).Output()
		if err != nil || string(out) != path {
			t.Errorf("%s becomes %s, %v", path, out, err)
		}
	}
}
