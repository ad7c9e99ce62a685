package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/attacker"
)

func TestTheUserIsTheRealOne(t *testing.T) {
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Process.Kill(); child.Wait() })
	if got := User(child.Process.Pid); got != uint32(os.Getuid()) {
		t.Errorf("a child is of user %d", got)
	}
	for status, want := range map[string]uint32{
		"Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t7\t7\t7\t7\n": 1000, // a set-user-ID program
		"Name:\tx\n":          UnknownUser,
		"Uid:\n":              UnknownUser,
		"Uid:\t-1\t0\t0\t0\n": UnknownUser,
	} {
		if got := parseUser([]byte(status)); got != want {
			t.Errorf("%q: user %d, want %d", status, got, want)
		}
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	if got := User(gone.Process.Pid); got != UnknownUser {
		t.Errorf("a process that has ended is of user %d", got)
	}
}

// Who may not be looked into does not have root pay for what it maps.
func TestAProcessThatHidesIsItsOwnUsers(t *testing.T) {
	dir := attacker.Directory(t)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	program, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	hidden := filepath.Join(dir, "sleep")
	if err := os.WriteFile(hidden, program, 0o711); err != nil { // root's, to be run and not read
		t.Fatal(err)
	}
	if err := os.Chmod(hidden, 0o711); err != nil {
		t.Fatal(err)
	}
	job := attacker.Command(t, dir, `exec ./sleep 1000`)
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { job.Process.Kill(); job.Wait() })
	for { // until it is that program
		if exe, _ := os.Readlink(FS{}.pidPath(job.Process.Pid, "exe")); exe == hidden {
			break
		}
	}
	if got := User(job.Process.Pid); got != attacker.ID {
		t.Errorf("it is of user %d, want %d", got, attacker.ID)
	}
	if info, err := os.Stat(FS{}.pidPath(job.Process.Pid)); err == nil && info.Sys().(*syscall.Stat_t).Uid == attacker.ID {
		t.Log("this kernel says so of /proc/PID, too")
	}
}

// Who has many users, as those of a container, is one.
func TestTheUsersOfANamespaceAreOne(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes a namespace of many users without help")
	}
	maps := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 100_000, Size: 16}}
	child := exec.Command("sleep", "1000")
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: maps, GidMappings: maps,
		Credential: &syscall.Credential{Uid: 7, Gid: 7, NoSetGroups: true},
	}
	if err := child.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { child.Process.Kill(); child.Wait() })
	if got := User(child.Process.Pid); got != 100_000 {
		t.Errorf("a container's process is of user %d, want the one that its root is outside", got)
	}
	owned := attacker.Command(t, "/", "exec unshare -Ur sleep 1000")
	if err := owned.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { owned.Process.Kill(); owned.Wait() })
	if got := User(owned.Process.Pid); got != attacker.ID {
		t.Errorf("a process in a user's own namespace is of user %d, want %d", got, attacker.ID)
	}
}

// A namespace within a container's is its users' own: whoever makes many of them is one user still.
func TestANamespaceInAContainerIsTheContainers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes a namespace of many users without help")
	}
	maps := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 100_000, Size: 16}}
	container := exec.Command("sh", "-c", `unshare -Ur sh -c 'echo $$; exec sleep 1000'; true`)
	container.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: maps, GidMappings: maps, Setpgid: true,
		Credential: &syscall.Credential{Uid: 7, Gid: 7, NoSetGroups: true},
	}
	out, err := container.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := container.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { syscall.Kill(-container.Process.Pid, syscall.SIGKILL); container.Wait() })
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Skip("no namespace can be made in another: ", err)
	}
	if got := User(pid); got != 100_000 {
		t.Errorf("a process in a namespace of user 7's of a container is of user %d, want the container's", got)
	}
}
