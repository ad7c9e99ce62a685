package badinput

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunOfWhatIsNoCommand(t *testing.T) {
	needKernel(t)
	dir := t.TempDir()
	plain := filepath.Join(t.TempDir(), "plain")
	broken := filepath.Join(t.TempDir(), "broken")
	for path, mode := range map[string]os.FileMode{plain: 0o644, broken: 0o755} {
		if err := os.WriteFile(path, []byte("no program"), mode); err != nil {
			t.Fatal(err)
		}
	}
	runIn(t, dir, ebpfprof, "run", "--", "no-such-command").checkAlone(t, dir, failed, "no such command")
	runIn(t, dir, ebpfprof, "run", "--", broken+".missing").checkAlone(t, dir, failed, "no such command")
	runIn(t, dir, ebpfprof, "run", "--", plain).checkAlone(t, dir, failed, "not an executable")
	runIn(t, dir, ebpfprof, "run", "--quiet", "--", broken).checkAlone(t, dir, failed, "exec format error")
}

func TestRunOfACommandThatUsesNothingCapturesNothing(t *testing.T) {
	needKernel(t)
	r := run(t, ebpfprof, "run", "--frequency", "0", "--off-cpu-threshold", "0", "--no-io", "--", "false")
	r.check(t, nothing, "nothing was captured", "no library that the catalog knows")
	if !strings.Contains(r.stderr, "exit status 1") {
		t.Errorf("the command's own end is not told: %s", r.stderr)
	}
}

func TestRunTellsTheCommandsExitCodeAndSignal(t *testing.T) {
	needKernel(t)
	for script, code := range map[string]string{"exit 7": "7", "kill -KILL $$": "137"} {
		r := run(t, ebpfprof, "run", "--frequency", "0", "--off-cpu-threshold", "0", "--no-io", "--json", "--", "sh", "-c", script)
		if r.code != nothing || !strings.Contains(r.stdout, `"job_exit_code": `+code) {
			t.Errorf("%s: exit code %d\n%s%s", script, r.code, r.stdout, r.stderr)
		}
	}
}

func TestRunPassesInputAndOutputThrough(t *testing.T) {
	needKernel(t)
	r := run(t, "sh", "-c", "echo in | "+ebpfprof+" run --quiet -- cat")
	if r.stdout != "in\n" {
		t.Errorf("stdout %q\nstderr %s", r.stdout, r.stderr)
	}
}
