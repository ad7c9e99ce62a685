package process

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

// A recorder that its target started, as a notebook does, records what the target does and not itself.
func TestTheCallerIsNoChildOfItsTarget(t *testing.T) {
	sibling := exec.Command("sleep", "1000") // below the caller, and so below what started it
	if err := sibling.Start(); err != nil {
		t.Fatal(err)
	}
	defer sibling.Wait()
	defer sibling.Process.Kill()
	above, err := Children(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(above, os.Getpid()) || slices.Contains(above, sibling.Process.Pid) {
		t.Errorf("%v has the caller %d or its child %d", above, os.Getpid(), sibling.Process.Pid)
	}
	if mine, err := Children(os.Getpid()); err != nil || !slices.Contains(mine, sibling.Process.Pid) {
		t.Errorf("%v, %v: the caller's own children lack %d", mine, err, sibling.Process.Pid)
	}
}
