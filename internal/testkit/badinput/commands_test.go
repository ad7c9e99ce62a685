package badinput

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
	runIn(t, dir, ebpfprof, "run", "--", "no-such-command").checkAlone(t, dir, notFound, "no such command")
	runIn(t, dir, ebpfprof, "run", "--", broken+".missing").checkAlone(t, dir, notFound, "no such command")
	runIn(t, dir, ebpfprof, "run", "--", plain).checkAlone(t, dir, notExecutable, "not an executable")
	runIn(t, dir, ebpfprof, "run", "--quiet", "--", broken).checkAlone(t, dir, notExecutable, "exec format error")
}

// bare records next to nothing, so that what is tested is how run ends.
var bare = []string{"--frequency", "0", "--off-cpu-threshold", "0", "--no-io"}

func runBare(t *testing.T, flags []string, command ...string) result {
	t.Helper()
	return run(t, slices.Concat([]string{ebpfprof, "run"}, bare, flags, []string{"--"}, command)...)
}

func TestRunOfACommandThatUsesNothingCapturesNothing(t *testing.T) {
	needKernel(t)
	r := runBare(t, nil, "sh", "-c", "exit 9")
	r.check(t, 9, "nothing was captured", "no library that the catalog knows")
	if !strings.Contains(r.stderr, "exit status 9") {
		t.Errorf("the summary lacks the command's exit status: %s", r.stderr)
	}
	runBare(t, []string{"--quiet", "--require-recording"}, "true").check(t, notStarted)
}

func TestRunReturnsTheCommandsExitCode(t *testing.T) {
	needKernel(t)
	for script, code := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -KILL $$": 137, "kill -TERM $$": 143} {
		r := runBare(t, []string{"--json"}, "sh", "-c", script)
		if r.code != code || !strings.Contains(r.stdout, fmt.Sprintf(`"job_exit_code": %d`, code)) {
			t.Errorf("%s: exit code %d\n%s%s", script, r.code, r.stdout, r.stderr)
		}
	}
}

// A recording that is over before the command does not end it, and ebpfprof returns the command's exit code.
func TestRunWaitsForACommandThatOutlivesItsRecording(t *testing.T) {
	needKernel(t)
	marker := filepath.Join(t.TempDir(), "recorded")
	script := fmt.Sprintf("until test -e %s; do sleep 0.05; done; exit 6", marker)
	b := start(t, nil, slices.Concat([]string{ebpfprof, "run"}, bare, []string{"--duration", "100ms", "-o", filepath.Join(t.TempDir(), "d"),
		"--", "sh", "-c", script})...)
	b.until(t, "still runs")
	if err := os.WriteFile(marker, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	<-b.done
	if r := b.result(); r.code != 6 {
		t.Errorf("exit code %d, want the command's 6\n%s", r.code, r.stderr)
	}
}

// A supervisor stops what it started, and that is ebpfprof: the command gets the signal too.
func TestRunPassesSIGTERMOn(t *testing.T) {
	needKernel(t)
	b := start(t, nil, slices.Concat([]string{ebpfprof, "run"}, bare, []string{"-o", filepath.Join(t.TempDir(), "d"), "--",
		"sh", "-c", "trap 'exit 5' TERM; echo ready >&2; while :; do sleep 0.05; done"})...)
	b.until(t, "ready")
	b.Process.Signal(syscall.SIGTERM)
	<-b.done
	if r := b.result(); r.code != 5 {
		t.Errorf("exit code %d, want that of the command's handler, 5\n%s", r.code, r.stderr)
	}
}

// A recording that fails under way is not the command's failure, unless the user says so.
func TestAFailedRecordingLeavesTheCommandsExitCode(t *testing.T) {
	needKernel(t)
	for flag, want := range map[string]int{"--quiet": 4, "--require-recording": notStarted} {
		dir := filepath.Join(t.TempDir(), "dataset")
		// The dataset's files are renamed as the recording ends: without its directory that fails.
		r := runBare(t, []string{flag, "--output", dir}, "sh", "-c", "rm -rf "+dir+"; exit 4")
		if r.code != want || strings.Contains(r.stderr, "goroutine ") || !strings.Contains(r.stderr, "ebpfprof: ") {
			t.Errorf("%s: exit code %d, want %d\n%s", flag, r.code, want, r.stderr)
		}
	}
}

// Go's runtime cannot start under a low limit of the address space, and its traceback says nothing to a user.
func TestRunUnderALimitOfTheAddressSpace(t *testing.T) {
	needKernel(t)
	const limited = "ulimit %s 1000000; exec %s run --quiet -o %s -- sh -c 'ulimit -v; exit 3'"
	r := run(t, "sh", "-c", fmt.Sprintf(limited, "-Sv", ebpfprof, filepath.Join(t.TempDir(), "d")))
	if r.code != 3 || strings.TrimSpace(r.stdout) != "1000000" {
		t.Errorf("a soft limit is the command's alone: exit code %d, the command's limit %q\n%s", r.code, r.stdout, r.stderr)
	}
	// Without the capability to raise it, a hard limit stays.
	hard := fmt.Sprintf(limited, "-v", "setpriv --bounding-set -sys_resource --inh-caps -sys_resource --reuid 65534 --clear-groups "+
		ebpfprof, "d")
	run(t, "sh", "-c", hard).check(t, notStarted, "address space", "ulimit -v")
}

func TestRunPassesInputAndOutputThrough(t *testing.T) {
	needKernel(t)
	r := run(t, "sh", "-c", "echo in | "+ebpfprof+" run --quiet -- cat")
	if r.stdout != "in\n" {
		t.Errorf("stdout %q\nstderr %s", r.stdout, r.stderr)
	}
}
