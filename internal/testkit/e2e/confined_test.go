package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// privileges are the lines of a status by which a process may more than another.
var privileges = regexp.MustCompile(`(?m)^(Uid|Gid|Cap\w+|NoNewPrivs|Seccomp\w*):.*$`)

// The tracer confines itself once the command of run was started; that command, and a
// set-user-ID program in it, may what they may without ebpfprof.
func TestTheCommandOfRunIsNotConfined(t *testing.T) {
	harness.NeedKernel(t)
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) { // nobody has to get there
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cat, err := os.ReadFile("/bin/cat")
	if err != nil {
		t.Skip(err)
	}
	program := filepath.Join(dir, "cat")
	if err := os.WriteFile(program, cat, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(program, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	raised := "setpriv --reuid nobody --clear-groups " + program + " /proc/self/status"
	direct, err := exec.Command("sh", "-c", raised).Output()
	if err != nil {
		t.Skipf("no set-user-ID program runs here: %v", err)
	}
	tracer, command := filepath.Join(dir, "tracer"), filepath.Join(dir, "command")
	script := `i=0
until grep -q "^Seccomp:.2" /proc/$PPID/status || [ $i -ge 3000 ]; do i=$((i + 1)); sleep 0.02; done
cat /proc/$PPID/status >` + tracer + "\n" + raised + " >" + command
	harness.Record(t, nil, "sh", "-c", script)
	of := func(file string) string {
		status, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(privileges.FindAllString(string(status), -1), "\n")
	}
	if confined := of(tracer); !strings.Contains(confined, "NoNewPrivs:\t1\nSeccomp:\t2") {
		t.Errorf("the tracer is not confined:\n%s", confined)
	}
	want := strings.Join(privileges.FindAllString(string(direct), -1), "\n")
	if got := of(command); got != want {
		t.Errorf("a set-user-ID program under run has\n%s\nand without\n%s", got, want)
	}
}
