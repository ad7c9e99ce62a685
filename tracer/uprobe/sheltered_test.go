package uprobe

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAShelteredCallReturnsWhatItWould(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	fd, err := sheltered(unix.SYS_FCNTL, write.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(int(fd), []byte("x")); err != nil {
		t.Errorf("the descriptor that it made is not ours: %v", err)
	}
	if _, err := sheltered(unix.SYS_CLOSE, fd, 0, 0); err != nil {
		t.Error(err)
	}
	if _, err := sheltered(unix.SYS_CLOSE, fd, 0, 0); err != syscall.EBADF {
		t.Errorf("closing it again: %v", err)
	}
}

// attacherOf makes of the test a tracer that puts probes in and out until it is killed:
// of this process, with or without uprobe.multi.
const attacherOf = "UPROBE_TEST_ATTACHER_OF"

func TestAttacher(t *testing.T) {
	pid, _ := strconv.Atoi(os.Getenv(attacherOf))
	if pid == 0 {
		t.Skip("not asked for")
	}
	how := How{PID: pid, Multi: os.Getenv("UPROBE_TEST_MULTI") == "true"}
	libc := libcOf(t, pid)
	file, err := Open(libc)
	if err != nil {
		t.Fatal(err)
	}
	p, sites := program(t, how), someSites(t, libc, mostSites)
	if !how.Multi { // each waits for the kernel when it is closed
		sites = someSites(t, libc, 20)
	}
	fmt.Println("ready")
	for {
		links, err := Attach(file, p, sites, how)
		if err != nil {
			t.Fatal(err)
		}
		closeAll(links)
	}
}

// A tracer that is killed while it puts probes in, or out, leaves none in the job.
func TestATracerKilledAsProbesGoInAndOutLeavesNone(t *testing.T) {
	pid, libc := job(t)
	for multi, kills := range map[bool]int{true: 12, false: 3} {
		t.Run(fmt.Sprint("multi ", multi), func(t *testing.T) {
			if multi && HaveMulti() != nil {
				t.Skip("this kernel has no uprobe.multi")
			}
			for i := range kills {
				attacher := exec.Command(os.Args[0], "-test.run", "^TestAttacher$", "-test.v")
				attacher.Env = append(os.Environ(), fmt.Sprintf("%s=%d", attacherOf, pid), fmt.Sprintf("UPROBE_TEST_MULTI=%v", multi))
				out, err := attacher.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := attacher.Start(); err != nil {
					t.Fatal(err)
				}
				said := bufio.NewScanner(out)
				for said.Scan() && said.Text() != "ready" {
				}
				for !anyProbed(t, pid, libc) {
				}
				time.Sleep(rand.N(20 * time.Millisecond))
				attacher.Process.Kill()
				if err := attacher.Wait(); err == nil || err.Error() != "signal: killed" {
					t.Fatalf("it ended by itself: %v, %q", err, said.Text())
				}
				for until := time.Now().Add(time.Minute); anyProbed(t, pid, libc); time.Sleep(10 * time.Millisecond) {
					if time.Now().After(until) {
						t.Fatalf("kill %d left probes in the job", i)
					}
				}
			}
		})
	}
}

// anyProbed compares the code of a file in a process with that on disk.
func anyProbed(t *testing.T, pid int, path string) bool {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := file.Section(".text").Data()
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	first := file.Section(".text").Offset
	for line := range strings.Lines(string(maps)) {
		var start, end, offset uint64
		words := strings.Fields(line)
		if len(words) < 6 || words[1] != "r-xp" || words[5] != path {
			continue
		}
		fmt.Sscanf(words[0]+" "+words[2], "%x-%x %x", &start, &end, &offset)
		now := make([]byte, len(text))
		if _, err := memory.ReadAt(now, int64(start+first-offset)); err != nil {
			t.Fatal(err)
		}
		return !bytes.Equal(now, text)
	}
	t.Fatalf("%s is not mapped", path)
	return false
}
