package probes

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"
)

// A process that has exited but was not waited for has no memory any more: the
// way to its files fails, though the process is still there.
func TestAFileOfAnExitingProcessHasVanished(t *testing.T) {
	c := exec.Command("/bin/true")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	proc := fmt.Sprintf("/proc/%d/", c.Process.Pid)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if stat, _ := os.ReadFile(proc + "stat"); strings.Contains(string(stat), ") Z ") {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it does not exit")
		}
	}
	if _, err := link.OpenExecutable(proc + "map_files/400000-401000"); !vanished(err) {
		t.Errorf("%v is not taken for an exit", err)
	}
	if vanished(nil) {
		t.Error("no error is taken for an exit")
	}
	if _, err := link.OpenExecutable("/proc/self/exe/nothing"); vanished(err) {
		t.Errorf("%v is taken for an exit", err)
	}
}
