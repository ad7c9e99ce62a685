package features

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

// A filter of one thread is a filter: whichever thread meets a return probe makes its system call.
func TestAFilterOfAnyThreadCounts(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	for confine, want := range map[string]bool{"": false, "confine()": true, "threading.Thread(target=confine, daemon=True).start(); " +
		"done.wait()": true} {
		c := exec.Command(python, "-c", `import ctypes, struct, sys, threading, time
libc, done = ctypes.CDLL(None, use_errno=True), threading.Event()
def confine():
    allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(allow)))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
        print("cannot", flush=True)
    done.set()
    if threading.current_thread() is not threading.main_thread():
        time.sleep(1000)
`+confine+`
print("ready", flush=True)
sys.stdin.read()`)
		in, err1 := c.StdinPipe()
		out, err2 := c.StdoutPipe()
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if lines.Scan(); lines.Text() != "ready" {
			t.Skipf("no seccomp here: %q", lines.Text())
		}
		if got := underSeccomp(c.Process.Pid); got != want {
			t.Errorf("after %q: %t", confine, got)
		}
		in.Close()
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

func TestADebuggerIsSeen(t *testing.T) {
	if by := Debugger(os.Getppid()); by != 0 {
		t.Skip("these tests are debugged")
	}
	runtime.LockOSThread() // which is the tracer
	defer runtime.UnlockOSThread()
	c := exec.Command("sleep", "1000")
	c.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := c.Start(); err != nil {
		t.Skip("no ptrace here: ", err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	if by := Debugger(c.Process.Pid); by != os.Getpid() && by != syscall.Gettid() {
		t.Errorf("pid %d debugs it, and it is pid %d", by, os.Getpid())
	}
}
