package agent

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
)

// Whoever opens connections and says nothing leaves room for another user, and for itself when
// it has closed them.
func TestAPeerHasFewConnectionsAndLeavesRoom(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limit(listener)
	defer l.Close()
	accepted := make(chan net.Conn, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	var mine []net.Conn
	for i := range mostOfPeer + 3 {
		local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i%3))} // a user has as many addresses as it likes
		c, err := (&net.Dialer{LocalAddr: local}).Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		mine = append(mine, c)
	}
	var served []net.Conn
	for range mostOfPeer {
		served = append(served, <-accepted)
	}
	closed := 0
	for _, c := range mine[mostOfPeer:] {
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, io.EOF) || err != nil && strings.Contains(err.Error(), "reset") {
			closed++
		}
	}
	if closed != 3 {
		t.Errorf("%d of 3 beyond the limit were closed", closed)
	}
	for _, c := range served {
		c.Close()
	}
	if c, err := net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Error(err)
	} else {
		defer c.Close()
		(<-accepted).Close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all != 0 || len(l.peer) != 0 {
		t.Errorf("%d connections are still counted, of %v", l.all, l.peer)
	}
}

func TestAConnectionIsItsUsers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	mine, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	c, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if peer := peerOf(c); peer != "user "+strconv.Itoa(os.Geteuid()) {
		t.Errorf("it is from %q", peer)
	}
}

func TestNobodyIsWaitedForAtThePort(t *testing.T) {
	s := newServer(nil)
	for name, limit := range map[string]time.Duration{"reading": s.ReadTimeout, "headers": s.ReadHeaderTimeout, "writing": s.WriteTimeout,
		"idling": s.IdleTimeout} {
		if limit <= 0 {
			t.Errorf("%s takes as long as the peer likes", name)
		}
	}
}

// A worker reads what a hostile job has; the bucket's credentials are its only where it reads
// requests from the store.
func TestAWorkerHasNoCredentialsThatItNeedsNot(t *testing.T) {
	environment := []string{"PATH=/bin", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret", "AWS_PROFILE=p"}
	c := config.Config{Store: "s3://bucket/p"}
	if got := workerEnvironment(environment, &c); !slices.Equal(got, environment[:1]) {
		t.Errorf("%q", got)
	}
	c.KeyFile = "/key"
	if got := workerEnvironment(environment, &c); !slices.Equal(got, environment) {
		t.Errorf("with a key: %q", got)
	}
}

func TestAWorkerHasAMemoryLimitOfItsOwn(t *testing.T) {
	c := exec.Command("sleep", "1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	if err := limitMemory(c.Process.Pid, 400); err != nil {
		t.Fatal(err)
	}
	limits, err := os.ReadFile("/proc/" + strconv.Itoa(c.Process.Pid) + "/limits")
	if want := strconv.Itoa(workerBytes(400)); err != nil || !strings.Contains(string(limits), want) {
		t.Errorf("its limits have no %s (%v): %s", want, err, limits)
	}
}

// All stacks of a worker's threads count as its data, whatever of them is used.
func TestAWorkersThreadsHaveSmallStacks(t *testing.T) {
	var before, after unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &before); err != nil {
		t.Fatal(err)
	}
	var said []byte
	err := withSmallStacks(func() (err error) {
		said, err = exec.Command("sh", "-c", "ulimit -s").Output()
		return err
	})
	if got, want := strings.TrimSpace(string(said)), strconv.Itoa(int(min(before.Cur, threadStack)>>10)); err != nil || got != want {
		t.Errorf("its stacks have %s KiB, want %s (%v)", got, want, err)
	}
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &after); err != nil || after != before {
		t.Errorf("the supervisor's own limit is %v, was %v (%v)", after, before, err)
	}
}
