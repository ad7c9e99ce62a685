package confinement

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inside is set where this program is the one that is confined.
const inside = "EBPFPROF_TEST_CONFINED"

func TestMain(m *testing.M) {
	switch os.Getenv(inside) {
	case "":
	case "divided":
		os.Exit(divided())
	default:
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

// divided enters while another thread has a filter that this one does not have.
func divided() int {
	filtered, over := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
		program := unix.SockFprog{Len: 1, Filter: &allow}
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		_, _, failed := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
		if failed != 0 {
			err = failed
		}
		filtered <- err
		<-over
	}()
	defer close(over)
	if <-filtered != nil {
		return 3
	}
	if err := Enter(); err == nil || !strings.Contains(err.Error(), "has another filter") {
		return 4
	}
	return 0
}

// A filter that not all threads take over confines none of them: that is an error.
func TestAThreadWithAnotherFilterIsAnError(t *testing.T) {
	self := exec.Command("/proc/self/exe")
	self.Env = append(os.Environ(), inside+"=divided")
	out, err := self.CombinedOutput()
	switch {
	case self.ProcessState.ExitCode() == 3:
		t.Skipf("this kernel has no seccomp filters: %s", out)
	case err != nil:
		t.Errorf("%v: %s", err, out)
	}
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
