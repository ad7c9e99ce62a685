// Package attacker is another user of the machine, without any rights, for tests
// that hold what root does against what such a user may prepare.
package attacker

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// ID is the user and group: nobody's, on every Linux.
const ID = 65534

// Do runs a shell script as the attacker, in a directory, and fails the test if
// it cannot. Only root can become another user: elsewhere the test is skipped.
func Do(t testing.TB, dir, script string, args ...string) {
	t.Helper()
	if out, err := Command(t, dir, script, args...).CombinedOutput(); err != nil {
		t.Fatalf("as the attacker: %s: %v\n%s", script, err, out)
	}
}

// Command is a shell script that runs as the attacker; args are its $1, $2, ….
func Command(t testing.TB, dir, script string, args ...string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: only root can become another user")
	}
	c := exec.Command("sh", append([]string{"-c", script, "sh"}, args...)...)
	c.Dir = dir
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ID, Gid: ID}}
	return c
}

// Directory is a directory of the attacker's, which goes when the test ends.
func Directory(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: only root can become another user")
	}
	// Not t.TempDir, which other users may not enter.
	dir, err := os.MkdirTemp("", "ebpfprof-attacker-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, ID, ID); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Treasure is a file of root's with something in it; check says whether that is
// still so.
func Treasure(t testing.TB) (path string, check func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "treasure")
	const content = "root's own\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, func() {
		t.Helper()
		if b, err := os.ReadFile(path); err != nil || string(b) != content {
			t.Errorf("root's file has %d other bytes in it (%v)", len(b), err)
		}
	}
}
