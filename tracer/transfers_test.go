package tracer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// transferJob is testdata/native/transfers.c.
type transferJob struct {
	*exec.Cmd
	stdin io.Writer
	lines *bufio.Scanner
}

func startTransfers(t *testing.T, a, b string, flood int) *transferJob {
	t.Helper()
	j := &transferJob{Cmd: exec.Command(filepath.Join(buildNative(t), "transfers"), a, b, strconv.Itoa(flood))}
	stdin, err := j.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := j.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Process.Kill() })
	j.stdin, j.lines = stdin, bufio.NewScanner(stdout)
	j.lines.Scan() // ready
	return j
}

// transferred is what a job has read or written of one kind.
type transferred struct{ calls, failed, bytes, ns int64 }

// finish lets the job do its work, and returns what it says that it did.
func (j *transferJob) finish(t *testing.T) map[string]transferred {
	t.Helper()
	io.WriteString(j.stdin, "go\n")
	truth := map[string]transferred{}
	for j.lines.Scan() {
		var operation, of string
		var did transferred
		if _, err := fmt.Sscanf(j.lines.Text(), "%s %s %d %d %d %d", &operation, &of, &did.calls, &did.failed, &did.bytes, &did.ns); err != nil {
			t.Fatalf("%q: %v", j.lines.Text(), err)
		}
		truth[operation+" "+of[:len(of)-1]] = did
	}
	if err := j.Wait(); err != nil {
		t.Errorf("the job ended with %v", err)
	}
	return truth
}

// TestReadsAndWritesAreTheJobsOwn: each system call counts once, by what it reads or writes,
// and none of another process.
func TestReadsAndWritesAreTheJobsOwn(t *testing.T) {
	needKernel(t)
	a, b := filepath.Join(t.TempDir(), "a b"), t.TempDir()
	if err := os.Mkdir(a, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", a, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("kernel: a file system for the test: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(a, unix.MNT_DETACH) })
	const flood = 1_000_000
	job, neighbour := startTransfers(t, a, b, flood), startTransfers(t, a, t.TempDir(), 0)
	sink := &recordingSink{}
	session, err := Open(t.Context(), Options{
		PIDs: []int{job.Process.Pid}, Level: LevelSamples, Budget: 0.02, Follow: true, BufferBytes: 4 << 20, OffCPU: time.Millisecond,
		watchAll: true, // what gives way as a whole is TestWaitsAreSampledWhereWatchingThemCostsTooMuch's
	}, sink)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- session.Run(ctx) }()
	truth := job.finish(t)
	neighbour.finish(t)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	files := map[string]string{a: "a", mountOf(t, b): "b"}
	seen, floodSeen := sumTransfers(t, sink.io, files)
	for name, want := range truth {
		got := seen[name]
		if got.calls != want.calls || got.failed != want.failed || got.bytes != want.bytes {
			t.Errorf("%s: %+v, the job says %+v", name, got, want)
		}
		// What the job's child has read the job has no time of.
		if (got.ns <= 0 && want.ns > 0 || got.ns > want.ns) && name != "read b" {
			t.Errorf("%s: %d ns, the job was in them %d ns", name, got.ns, want.ns)
		}
		t.Logf("%s: %d ns of %d, %.1f %%", name, got.ns, want.ns, 100*float64(got.ns)/float64(max(1, want.ns)))
	}
	passed := int64(0)
	for _, w := range sink.warnings {
		if w.Source == "io_budget" {
			passed += w.Count
		}
	}
	if floodSeen.calls+passed != flood || floodSeen.bytes != floodSeen.calls {
		t.Errorf("of %d reads of /dev/zero %+v were measured and %d passed by", flood, floodSeen, passed)
	}
	t.Logf("%d of %d reads passed by", passed, flood)
	checkSlowRead(t, sink.long, truth["read pipe"])
}

// checkSlowRead: the job's child wrote 50 ms after it had seen its parent wait.
func checkSlowRead(t *testing.T, long []Span, truth transferred) {
	t.Helper()
	for _, s := range long {
		if s.Call.Category != "pipe" || *s.Detail.WaitedNS < int64(50*time.Millisecond) {
			continue
		}
		if s.Call.Name != "read" || *s.Detail.Bytes != 1 || s.DurationNS < *s.Detail.WaitedNS || s.DurationNS > truth.ns || s.Status != StatusOK {
			t.Errorf("the read from a pipe: %+v, %+v", s, s.Detail)
		}
		return
	}
	t.Errorf("no row of the read that waited for 50 ms, in %d long ones", len(long))
}

// sumTransfers adds rows up by what the job calls them, those of /dev/zero apart.
func sumTransfers(t *testing.T, rows []IO, files map[string]string) (sums map[string]transferred, zero transferred) {
	t.Helper()
	sums = map[string]transferred{}
	for _, r := range rows {
		if r.EndNS < r.TSNS || r.WaitedNS == nil || *r.WaitedNS > r.DurationNS {
			t.Errorf("a row that cannot be: %+v", r)
		}
		of := r.Kind
		if r.Kind == "file" {
			of = files[r.Mount]
		}
		add := func(to transferred) transferred {
			return transferred{to.calls + r.Calls, to.failed + r.Failed, to.bytes + r.Bytes, to.ns + r.DurationNS}
		}
		if r.Kind == "device" {
			zero = add(zero)
		}
		sums[r.Operation+" "+of] = add(sums[r.Operation+" "+of])
	}
	return sums, zero
}

// mountOf is where the file system of a directory is mounted.
func mountOf(t *testing.T, directory string) string {
	t.Helper()
	var of, above unix.Stat_t
	for {
		if unix.Stat(directory, &of) != nil || unix.Stat(filepath.Dir(directory), &above) != nil {
			t.Fatalf("looking for the mount of %s", directory)
		}
		if of.Dev != above.Dev || directory == "/" {
			return directory
		}
		directory = filepath.Dir(directory)
	}
}
