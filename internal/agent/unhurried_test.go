package agent

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAWorkersThreadsHaveSlackAndTheAgentsHaveNot(t *testing.T) {
	before, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		t.Skip("no timer slack:", err)
	}
	var out bytes.Buffer
	c := exec.Command("cat", "/proc/self/timerslack_ns")
	c.Stdout = &out
	if err := startUnhurried(c); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(out.String()); got != "500000" {
		t.Errorf("what was started has a slack of %s ns", got)
	}
	if after, _ := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); after != before {
		t.Errorf("who started it has %d ns, had %d", after, before)
	}
}
