package process

import (
	"bufio"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A process whose main thread has ended goes on in its others: it is opened and read through one of them.
func TestAProcessOutlivesItsMainThread(t *testing.T) {
	const program = `
import ctypes, os, sys, threading
libc = ctypes.CDLL(None)
def work():

    while b"State:\tZ" not in open("/proc/%d/status" % os.getpid(), "rb").read():
        pass
    print("ready", flush=True)
    sys.stdin.read()
    libc._exit(0)
main = threading.main_thread()
threading.Thread(target=work).start()
libc.syscall(60, 0)`
	job := exec.Command("/usr/bin/python3", "-c", program)
	in, err := job.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := job.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Start(); err != nil {
		t.Skip("no Python")
	}
	early, openErr := Open(job.Process.Pid) // perhaps before its main thread ends
	t.Cleanup(func() { job.Process.Kill(); job.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	p, err := Open(job.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if openErr != nil {
		early = p
	}
	for _, p := range []*Process{p, early} {
		libraries, err := p.Libraries()
		if err != nil {
			t.Fatal(err)
		}
		if !p.Alive() || !slices.ContainsFunc(libraries, func(l *Library) bool { return strings.HasPrefix(l.Name(), "libc.so") }) {
			t.Errorf("alive %t, %d libraries", p.Alive(), len(libraries))
		}
		if threads, err := p.Threads(); err != nil || len(threads) < 1 {
			t.Errorf("%d threads, %v", len(threads), err)
		}
		if file, _, err := libraries[0].Open(); err != nil {
			t.Error(err)
		} else {
			file.Close()
		}
	}
	if !strings.Contains(p.Exe, "python3") || !strings.Contains(p.Command, "syscall(60, 0)") {
		t.Errorf("it runs %q: %q", p.Exe, p.Command)
	}
	in.Close()
	job.Wait()
	if p.Alive() {
		t.Error("it lives after its end")
	}
}
