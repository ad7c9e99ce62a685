package badinput

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestTopRefusesWhatAttachRefuses(t *testing.T) {
	needKernel(t)
	dir := t.TempDir()
	runIn(t, dir, ebpfprof, "top", "--pid", "4194305").checkAlone(t, dir, failed, "no process with pid 4194305")
}

func TestTopPrintsPagesWhereThereIsNoTerminal(t *testing.T) {
	needKernel(t)
	job := openCL(t)
	r := run(t, ebpfprof, "top", "--pid", pidOf(job), "--duration", "2500ms", "--interval", "1s", "--native")
	if r.code != ok || strings.Contains(r.stdout, "\x1b") || strings.Count(r.stdout, "pid "+pidOf(job)) < 2 || !strings.Contains(r.stdout,
		"▼%own") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if !job.alive() {
		t.Error("the job is gone")
	}
}

func TestTopEndsWithTheJob(t *testing.T) {
	needKernel(t)
	job := openCL(t)
	b := start(t, nil, ebpfprof, "top", "--pid", pidOf(job), "--interval", "100ms")
	b.until(t, "samples")
	syscall.Kill(-job.Process.Pid, syscall.SIGKILL)
	if r := b.end(t); r.code != ok {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
}

// terminal is a pseudo terminal: what a program writes to slave is read from master.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { slave.Close() })
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 12, Col: 70}); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

func TestTopGivesTheTerminalBack(t *testing.T) {
	needKernel(t)
	job := openCL(t)
	for name, end := range map[string]func(*os.File, *exec.Cmd){
		"q":         func(keys *os.File, _ *exec.Cmd) { keys.WriteString("2q") },
		"interrupt": func(_ *os.File, c *exec.Cmd) { c.Process.Signal(os.Interrupt) },
	} {
		t.Run(name, func(t *testing.T) {
			master, slave := terminal(t)
			before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			c := exec.Command(ebpfprof, "top", "--pid", pidOf(job), "--interval", "100ms", "--native")
			c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
			c.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=1")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			defer c.Process.Kill()
			shown := readUntil(t, master, "▼%own")
			end(master, c)
			shown += readUntil(t, master, "\x1b[?1049l")
			if err := c.Wait(); err != nil {
				t.Errorf("%v\n%q", err, shown)
			}
			after, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
			if err != nil || after.Lflag != before.Lflag {
				t.Errorf("the terminal's flags are %#x, were %#x: %v", after.Lflag, before.Lflag, err)
			}
			if strings.Contains(shown, "\x1b[7m") {
				t.Error("colours in spite of NO_COLOR")
			}
			checkPage(t, shown)
		})
	}
}

// checkPage fails for lines that do not fit a terminal of 70 columns.
func checkPage(t *testing.T, shown string) {
	t.Helper()
	for _, page := range strings.Split(shown, "\x1b[H")[1:] {
		lines := strings.Split(strings.NewReplacer("\x1b[K", "", "\x1b[J", "", "\r", "").Replace(page), "\n")
		if len(lines) > 12+1 {
			t.Errorf("%d lines: %q", len(lines), page)
		}
		for _, line := range lines {
			if line, _, _ = strings.Cut(line, "\x1b"); len([]rune(line)) > 70 {
				t.Errorf("%q", line)
			}
		}
	}
}

func readUntil(t *testing.T, from *os.File, text string) string {
	t.Helper()
	found := make(chan string, 1)
	go func() {
		var all bytes.Buffer
		b := make([]byte, 4096)
		for !strings.Contains(all.String(), text) {
			n, err := from.Read(b)
			all.Write(b[:n])
			if err != nil {
				break
			}
		}
		found <- all.String()
	}()
	select {
	case all := <-found:
		if !strings.Contains(all, text) {
			t.Fatalf("no %q in %q", text, all)
		}
		return all
	case <-time.After(patience):
		t.Fatalf("no %q", text)
		return ""
	}
}
