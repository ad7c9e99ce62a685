package ondemand

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	_ "os/user" // has this program linked with the C library: a static one is no job
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// client is what a job's profiler does, in a process of its own: it asks until it is given a configuration, and then
// writes what its test says.
const client = "EBPFPROF_TEST_CLIENT"

func TestMain(m *testing.M) {
	if behaviour := os.Getenv(client); behaviour != "" {
		if err := actAsClient(behaviour); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	name = fmt.Sprintf("@ebpfprof-test-%d\x00", os.Getpid())
	os.Exit(m.Run())
}

func actAsClient(behaviour string) error {
	to := os.Getenv(client+"_NAME") + "\x00"
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("@client-%d\x00", os.Getpid())}); err != nil {
		return err
	}
	var payload []byte
	pid := uint32(os.Getpid())
	if behaviour == "another's name" {
		pid = 1
	}
	for _, n := range []uint32{activities, 1, 0, 0, pid} {
		payload = binary.LittleEndian.AppendUint32(payload, n)
	}
	b := message{requests, payload}.bytes()
	if behaviour == "garbage" {
		for _, bad := range [][]byte{nil, {1}, make([]byte, headBytes), make([]byte, 3*mostMessage),
			append([]byte{255, 255, 255, 255, 255, 255, 255, 255}, b[8:]...)} {
			_ = unix.Sendto(fd, bad, 0, &unix.SockaddrUnix{Name: to})
		}
	}
	buffer := make([]byte, 1<<16)
	for {
		if err := unix.Sendto(fd, b, 0, &unix.SockaddrUnix{Name: to}); err != nil {
			return err
		}
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil {
			return err
		}
		m, err := parseMessage(buffer[:n])
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(m.payload)) {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), "ACTIVITIES_LOG_FILE="); ok {
				return write(behaviour, strings.TrimSuffix(path, ".json")+fmt.Sprintf("_%d.json", os.Getpid()))
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func write(behaviour, path string) (err error) {
	const trace = `{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}`
	switch behaviour {
	case "large":
		var f *os.File
		if f, err = os.Create(path); err == nil {
			err = f.Truncate(5 << 30)
		}
	case "link":
		err = os.Symlink("/etc/passwd", path)
	case "another name":
		other := filepath.Join(filepath.Dir(path), "other")
		if err = os.WriteFile(other, []byte(trace), 0o600); err == nil {
			err = os.Link(other, path)
		}
	case "pipe":
		err = unix.Mkfifo(path, 0o600)
	case "directory":
		err = os.Mkdir(path, 0o700)
	case "nothing", "exits":
	case "half":
		err = os.WriteFile(path, []byte(trace[:40]), 0o600)
	default:
		err = os.WriteFile(path, []byte(trace), 0o600)
	}
	if err != nil {
		return err
	}
	select {} // a job goes on
}

// asked starts a client and returns what became of the asking once it is decided.
func asked(t *testing.T, behaviour string) Result {
	t.Helper()
	job := exec.Command(os.Args[0], "-test.run=^$")
	job.Env = append(os.Environ(), client+"="+behaviour, client+"_NAME="+strings.TrimSuffix(name, "\x00"))
	var complaints strings.Builder
	job.Stderr = &complaints
	// The client finds the daemon there, whichever begins first.
	o := DefaultOptions([]int{os.Getpid()})
	o.Window, o.Patience, o.MostBytes = 10*time.Millisecond, time.Second, 1<<20
	d, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Start(); err != nil {
		d.Finish(context.Background())
		t.Fatal(err)
	}
	t.Cleanup(func() { job.Process.Kill(); job.Wait() })
	for deadline := time.Now().Add(time.Minute); !d.waiting(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: nobody asked: %s", behaviour, &complaints)
		}
	}
	if behaviour == "exits" {
		job.Process.Kill()
		job.Wait()
	}
	r := d.Finish(context.Background())
	t.Cleanup(r.Discard)
	if left, _ := filepath.Glob("/tmp/ebpfprof-trace-*/trace_" + fmt.Sprint(job.Process.Pid) + ".json"); behaviour != "directory" &&
		len(left) > 0 {
		t.Errorf("%s: %q are left", behaviour, left)
	}
	return r
}

func TestATraceIsHandedOver(t *testing.T) {
	for _, behaviour := range []string{"well", "garbage", "another's name"} { // the kernel says who asks
		r := asked(t, behaviour)
		if len(r.Traces) != 1 || r.Traces[0].Err != nil {
			t.Errorf("%s: %+v", behaviour, r)
			continue
		}
		content, err := os.ReadFile(r.Traces[0].File)
		if info, _ := os.Stat(r.Traces[0].File); err != nil || !strings.Contains(string(content), "aten::mm") || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %q, %v", behaviour, content, err)
		}
		if r.Discard(); len(r.Refused) > 0 {
			t.Errorf("%s: %q", behaviour, r.Refused)
		}
		if _, err := os.Stat(r.Traces[0].File); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the copy is left: %v", behaviour, err)
		}
	}
}

func TestWhatAJobHandsOverInPlaceOfATraceIsNotRead(t *testing.T) {
	for behaviour, want := range map[string]error{
		"large": process.ErrTooLarge, "link": process.ErrHandover, "pipe": process.ErrHandover, "directory": process.ErrHandover,
		"another name": process.ErrHandover, "nothing": ErrNoTrace, "exits": ErrExited,
	} {
		r := asked(t, behaviour)
		if len(r.Traces) != 1 || !errors.Is(r.Traces[0].Err, want) || r.Traces[0].File != "" {
			t.Errorf("%s: %+v, want %v", behaviour, r, want)
		}
	}
}

// What never becomes whole is taken as it is at the deadline: whoever reads it says what is missing.
func TestHalfATraceIsHandedOver(t *testing.T) {
	r := asked(t, "half")
	if len(r.Traces) != 1 || r.Traces[0].Err != nil || r.Traces[0].File == "" {
		t.Errorf("%+v", r)
	}
}

func TestAStrangerIsNotAnswered(t *testing.T) {
	job := exec.Command("sleep", "600")
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { job.Process.Kill(); job.Wait() }()
	d, err := Start(DefaultOptions([]int{job.Process.Pid}))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("@stranger-%d\x00", os.Getpid())}); err != nil {
		t.Fatal(err)
	}
	payload := binary.LittleEndian.AppendUint64([]byte{activities, 0, 0, 0, 1, 0, 0, 0}, 0)
	if err := unix.Sendto(fd, message{requests, append(payload, 1, 0, 0, 0)}.bytes(), 0, &unix.SockaddrUnix{Name: name}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		d.mu.Lock()
		n := d.strange
		d.mu.Unlock()
		if n == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the message was not counted")
		}
	}
	r := d.Finish(context.Background())
	if len(r.Traces) != 0 || !strings.Contains(strings.Join(r.Refused, "\n"), "1 message of a process that is not recorded") {
		t.Errorf("%+v", r)
	}
	if _, _, err := unix.Recvfrom(fd, make([]byte, 10), unix.MSG_DONTWAIT); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("it was answered: %v", err)
	}
}

func TestAnotherDaemonKeepsTheName(t *testing.T) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(DefaultOptions([]int{os.Getpid()})); !errors.Is(err, ErrNameTaken) {
		t.Errorf("%v", err)
	}
}

func TestWhyAJobCannotBeAsked(t *testing.T) {
	for want, f := range map[string]process.Profiler{
		"":                                {PyTorch: "2.15", Mapped: true, Client: true, Asks: true},
		"maps no PyTorch":                 {},
		"PyTorch 1.13 has no client":      {PyTorch: "1.13", Mapped: true},
		"not started with KINETO_USE_DAE": {PyTorch: "2.15", Mapped: true, Client: true},
		"KINETO_IPC_SOCKET_DIR":           {PyTorch: "2.15", Mapped: true, Client: true, Asks: true, Directory: "/run"},
	} {
		if got := unaskable(f); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
}
