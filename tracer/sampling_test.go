package tracer

import (
	"bufio"
	"os/exec"
	"testing"
	"time"
)

// openCold opens a session on a Python process that no table was ever made for.
func openCold(t *testing.T, preparing func(done, of int) bool) (*Session, *exec.Cmd) {
	t.Helper()
	needKernel(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	job := exec.Command("python3", "-c", "import time\nprint('ready', flush=True)\ntime.sleep(600)")
	stdout, err := job.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { job.Process.Kill(); job.Wait() })
	if !bufio.NewScanner(stdout).Scan() { // the interpreter has mapped its libraries
		t.Fatal("the interpreter does not begin")
	}
	session, err := Open(t.Context(), Options{
		PIDs: []int{job.Process.Pid}, Level: LevelSamples, Frequency: 99, Preparing: preparing, BufferBytes: 1 << 20,
	}, Discard{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session, job
}

func TestStacksWaitForTheTables(t *testing.T) {
	session, _ := openCold(t, func(int, int) bool { return true })
	if done, of := session.sampling.walks.Progress(); of == 0 || done != of {
		t.Errorf("%d of %d tables are there when the first stack is taken", done, of)
	}
}

func TestTheTablesAreNotWaitedForLongerThanAsked(t *testing.T) {
	calls := 0
	began := time.Now()
	session, _ := openCold(t, func(done, of int) bool {
		if calls++; done > of {
			t.Errorf("%d of %d are done", done, of)
		}
		return false
	})
	if calls > 1 {
		t.Errorf("asked %d times after the first no", calls-1)
	}
	session.sampling.walks.Wait()
	t.Logf("open after %s, %d calls", time.Since(began), calls)
}
