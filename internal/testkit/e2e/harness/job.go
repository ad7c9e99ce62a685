package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// RunJob runs a job without any tracer, and returns what it says of itself.
func RunJob(t *testing.T, argv ...string) Truth {
	t.Helper()
	return Start(t, argv...).FinishJob(t)
}

// StartJob starts a job, to wait after its warm-up for GoOn.
func StartJob(t *testing.T, argv ...string) *Command {
	t.Helper()
	c := Start(t, append(argv, "--wait")...)
	c.Line(t, "ready ")
	return c
}

// GoOn lets a job go on that waits.
func (c *Command) GoOn(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(c.stdin, "\n"); err != nil {
		t.Fatal(err)
	}
}

// ReadyPID is the pid that a job told when it was ready.
func (c *Command) ReadyPID(t *testing.T) (pid int) {
	t.Helper()
	for _, line := range c.Lines() {
		if n, _ := fmt.Sscanf(line, "ready %d", &pid); n == 1 {
			return pid
		}
	}
	t.Fatalf("%s told no pid", c)
	return 0
}

// FinishJob waits for a job to end well and returns what it says of itself.
func (c *Command) FinishJob(t *testing.T) Truth {
	t.Helper()
	err := c.wellEnded()
	told, truthErr := c.Truth()
	if err := errors.Join(err, truthErr); err != nil {
		t.Fatal(err)
	}
	return told
}

// Profile runs a job under torch.profiler and reads what that wrote.
func Profile[T any](t *testing.T, argv ...string) (into T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "profile.json")
	RunJob(t, append(argv, "--profile", file)...)
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, &into)
	}
	if err != nil {
		t.Fatal(err)
	}
	return into
}
