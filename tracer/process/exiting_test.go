package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A process ends in steps: for some milliseconds its memory is gone, and it is no zombie
// yet. That its maps are empty then, or end early, is no news of what it has mapped: who
// believed it would forget what the addresses of its last calls mean.
func TestAProcessThatIsEndingHasAllItsLibrariesOrNone(t *testing.T) {
	looks := 0
	for range 5 {
		// The memory makes its end take long.
		j := start(t, systemPython(t), "-c", `import sys
held = bytearray(b"x") * (256 << 20)
print("ready", flush=True)
sys.stdin.read()`)
		j.line(t)
		p, libraries := mustOpen(t, j.Process.Pid)
		if err := j.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for {
			now, err := p.Libraries()
			if errors.Is(err, ErrExited) || errors.Is(err, ErrNotFound) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			looks++
			if len(now) != len(libraries) {
				t.Fatalf("look %d: %d libraries, it has mapped %d", looks, len(now), len(libraries))
			}
		}
	}
	t.Logf("%d looks", looks)
}

// An exec takes the memory of the old program away as an exit does. Of a process that
// does nothing else it is never said that it ends: who believed it would forget a process
// that has just begun.
func TestAProcessThatExecutesProgramsIsNotEnding(t *testing.T) {
	script := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec \"$0\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	j := start(t, script)
	looks, programs, last := 0, 0, ""
	for began := time.Now(); time.Since(began) < 2*time.Second || programs < 100 && time.Since(began) < 3*time.Minute; looks++ {
		content, cut, err := FS{}.readMaps(j.Process.Pid)
		if err != nil || cut {
			t.Fatalf("look %d: %v, cut: %v", looks, err, cut)
		}
		// Each program has its stack elsewhere.
		if line, _, _ := strings.Cut(string(content), "\n"); line != last {
			programs, last = programs+1, line
		}
	}
	if programs < 100 {
		t.Errorf("%d looks saw %d programs: this tests nothing", looks, programs)
	}
	t.Logf("%d looks at %d programs", looks, programs)
}
