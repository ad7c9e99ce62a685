package tracer

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// What an unprivileged user's process may do to the tracer, and through it to
// others: the jobs here are hostile, and those beside them must not notice.

// nobody owns nothing and may do nothing.
const nobody = 65534

// hostileJob is a process of another user that does what lines on its stdin say
// and answers each with a line.
type hostileJob struct {
	*exec.Cmd
	to   io.Writer
	from *bufio.Scanner
}

// startAs starts a program as another user, and waits for its first line, if it
// says one by itself.
func startAs(t *testing.T, uid uint32, greets bool, argv ...string) *hostileJob {
	t.Helper()
	program, err := filepath.Abs(argv[0])
	if err != nil {
		t.Fatal(err)
	}
	j := &hostileJob{Cmd: exec.Command(program, argv[1:]...)}
	j.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}, Setpgid: true}
	j.Dir, j.Stderr = "/", os.Stderr
	in, err := j.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := j.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-j.Process.Pid, syscall.SIGKILL)
		j.Wait()
	})
	j.to, j.from = in, bufio.NewScanner(out)
	if greets {
		j.line(t)
	}
	return j
}

func (j *hostileJob) line(t *testing.T) string {
	t.Helper()
	if !j.from.Scan() {
		t.Fatalf("%s said no more: %v", j.Args, j.from.Err())
	}
	return j.from.Text()
}

func (j *hostileJob) tell(t *testing.T, line string) string {
	t.Helper()
	if _, err := fmt.Fprintln(j.to, line); err != nil {
		t.Fatal(err)
	}
	return j.line(t)
}

// forAll is a directory that every user can enter.
func forAll(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hostile-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// ramDisk mounts a file system whose first file has the inode number of every
// other one's first file.
func ramDisk(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", path, "tmpfs", 0, "mode=0755"); err != nil {
		t.Skipf("mounting a tmpfs: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(path, syscall.MNT_DETACH) })
	return path
}

func install(t *testing.T, from, to string, owner int) string {
	t.Helper()
	contents, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, contents, 0o755)
	}
	if err == nil {
		err = os.Chown(to, owner, owner)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func inodeOf(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

func impostorGroup() []spec.Group {
	return []spec.Group{{Name: "native", Tier: spec.Anchor, Functions: []spec.Function{{
		Library: "libimpostor.so", Symbol: "impostor", Exact: true, Layer: "native", Label: "impostor", Action: spec.Span, End: spec.NoEnd,
	}}}}
}

// A user maps a file of its own, lets it be planned, and puts a file of root's in
// its place that has the same inode number on another file system. Its probes must
// not go there: a process that nobody traces runs that file's code.
func TestProbesDoNotFollowAMappingToAnotherFile(t *testing.T) {
	needKernel(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("the two libraries are x86-64 code")
	}
	build, dir := buildNative(t), forAll(t)
	impostor := install(t, filepath.Join(build, "libimpostor.so"), filepath.Join(ramDisk(t, dir, "theirs"), "libimpostor.so"), nobody)
	innocent := install(t, filepath.Join(build, "libinnocent.so"), filepath.Join(ramDisk(t, dir, "ours"), "libinnocent.so"), 0)
	if a, b := inodeOf(t, impostor), inodeOf(t, innocent); a != b {
		t.Fatalf("inodes %d and %d", a, b)
	}
	swap := install(t, filepath.Join(build, "swap"), filepath.Join(dir, "swap"), 0)

	bystander := startAs(t, 0, false, filepath.Join(build, "answers"), innocent, "answer")
	if said := bystander.tell(t, ""); said != "45" {
		t.Fatalf("before: %s", said)
	}
	attacker := startAs(t, nobody, true, swap, impostor, innocent)
	for way, perf := range attachWays {
		t.Run(way, func(t *testing.T) {
			sink := &recordingSink{}
			session, err := Open(t.Context(), Options{PIDs: []int{attacker.Process.Pid}, Follow: true, BufferBytes: 4 << 20, PerfEvents: perf,
				catalog: impostorGroup()}, sink)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if len(session.probes.Files()) != 1 {
				t.Fatalf("%d files, want the impostor", len(session.probes.Files()))
			}
			attacker.tell(t, "swap")
			session.probes.Detach() // as from one slice to the next
			if err := session.probes.AttachAnchors(); err != nil {
				t.Error(err)
			}
			if said := bystander.tell(t, ""); said != "45" {
				t.Errorf("a process that is not traced got %s of a function that returns 45", said)
			}
		})
		attacker = startAs(t, nobody, true, swap, impostor, innocent)
	}
	if said := strings.TrimSpace(bystander.tell(t, "")); said != "45" {
		t.Errorf("after: %s", said)
	}
}

// A user writes other code into a file of its own after the probes were planned.
// They must not go in; the recording goes on and says so.
func TestProbesAreNotPutIntoAFileThatChanged(t *testing.T) {
	needKernel(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("the library is x86-64 code")
	}
	build, dir := buildNative(t), forAll(t)
	impostor := install(t, filepath.Join(build, "libimpostor.so"), filepath.Join(dir, "libimpostor.so"), nobody)
	swap := install(t, filepath.Join(build, "swap"), filepath.Join(dir, "swap"), 0)
	for way, perf := range attachWays {
		t.Run(way, func(t *testing.T) {
			install(t, filepath.Join(build, "libimpostor.so"), impostor, nobody)
			attacker := startAs(t, nobody, true, swap, impostor, impostor)
			sink := &recordingSink{}
			session, err := Open(t.Context(), Options{PIDs: []int{attacker.Process.Pid}, Follow: true, BufferBytes: 4 << 20, PerfEvents: perf,
				catalog: impostorGroup()}, sink)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			file, err := os.OpenFile(impostor, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.WriteAt([]byte{0xb8, 45, 0, 0, 0, 0xc3}, 0x1000); err != nil { // mov $45, %eax; ret
				t.Fatal(err)
			}
			file.Close()
			session.probes.Detach()
			if err := session.probes.AttachAnchors(); err != nil {
				t.Errorf("the change ends the recording: %v", err)
			}
			if n := session.probes.Sites(); n > 0 {
				t.Errorf("%d probes are in", n)
			}
			session.decoder.Serve()
			if !slices.ContainsFunc(sink.warnings, func(w Warning) bool { return w.Kind == "attach" && w.Source == impostor && w.Count == 1 }) {
				t.Errorf("nothing is said: %+v", sink.warnings)
			}
		})
	}
}
