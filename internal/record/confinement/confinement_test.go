package confinement

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// inside is set where this program is the one that is confined.
const inside = "EBPFPROF_TEST_CONFINED"

func TestMain(m *testing.M) {
	if os.Getenv(inside) != "" {
		os.Exit(confined())
	}
	os.Exit(m.Run())
}

// confined enters, and says what it can do still.
func confined() int {
	before := make(chan error)
	begin := make(chan struct{})
	go func() { // on another thread, as one that a library has made
		<-begin
		before <- unix.Unshare(unix.CLONE_FS)
	}()
	if err := Enter(); err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		return 3
	}
	close(begin)
	_, _, newer := unix.RawSyscall(4000, 0, 0, 0)
	switch {
	case !errors.Is(<-before, unix.EPERM), !errors.Is(unix.Chroot("/"), unix.EPERM), !errors.Is(unix.Mount("", "/", "", unix.MS_REMOUNT, ""),
		unix.EPERM):
		return 4
	case newer != unix.ENOSYS:
		return 5
	}
	status, err := exec.Command("/bin/cat", "/proc/self/status").Output()
	if err != nil || !strings.Contains(string(status), "NoNewPrivs:\t1\n") || !strings.Contains(string(status), "Seccomp:\t2\n") {
		os.Stderr.Write(status)
		return 6
	}
	return 0
}

// What is confined cannot change the machine, on no thread, and goes on with all else.
func TestWhoIsConfinedStays(t *testing.T) {
	self := exec.Command("/proc/self/exe")
	self.Env = append(os.Environ(), inside+"=1")
	if out, err := self.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "filtering our own system calls") {
			t.Skipf("this kernel has no seccomp filters: %s", out)
		}
		t.Errorf("%v: %s", err, out)
	}
	if n := len(denied); n > 200 {
		t.Errorf("%d calls are denied: a jump of the filter reaches 255", n)
	}
}
