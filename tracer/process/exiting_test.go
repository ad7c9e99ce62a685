package process

import (
	"errors"
	"testing"
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
