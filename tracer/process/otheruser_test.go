package process

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAnotherUsersProcessNamesTheCapability(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	j := start(t, "cat")
	mustOpen(t, j.Process.Pid)
	result := make(chan error)
	onOtherThread(func() {
		// One thread of this program alone gives its identity up.
		const nobody = 65534
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			result <- errno
			return
		}
		_, err := Open(j.Process.Pid)
		result <- err
	})
	err := <-result
	if !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), "CAP_SYS_PTRACE") {
		t.Errorf("%v, want ErrPermission", err)
	}
}

// onOtherThread runs f on a thread that ends with it, because it stays locked: not on the
// main one, which never ends, and whose user is the process's for all who ask.
func onOtherThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			done := make(chan struct{})
			onOtherThread(func() { defer close(done); f() })
			<-done // this goroutine has the main thread until then
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
}
