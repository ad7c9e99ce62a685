package tracer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// timesInAndOut is how often the probes go in and out: 2,000 before a merge, as many
// as EBPFPROF_IN_OUT says in the soak.
func timesInAndOut() int {
	if n, err := strconv.Atoi(os.Getenv("EBPFPROF_IN_OUT")); err == nil {
		return n
	}
	return 2000
}

// All probes go in and out, thousands of times, at random instants, under a job that
// throws through them and forks. It does what it does without them, and nothing of
// them is left in its code.
func TestProbesInAndOutThousandsOfTimesHarmNobody(t *testing.T) {
	needKernel(t)
	build := buildNative(t)
	job := exec.Command(filepath.Join(build, "throws-both"), strconv.Itoa(1<<62), "wait", "forks")
	stdin, _ := job.StdinPipe()
	stdout, _ := job.StdoutPipe()
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	defer job.Process.Kill()
	lines := bufio.NewScanner(stdout)
	lines.Scan() // ready
	groups := nativeGroup("libthrower-both", catalog.ExitSites, map[string]string{
		"maybe": "_ZN7thrower5maybeEl", "nested": "_ZN7thrower6nestedEll",
		"shielded": "_ZN7thrower8shieldedEl", "Worker::work": "_ZN7thrower6Worker4workEl",
	})
	sink := &nowhere{}
	trial, err := OpenTrial(Options{PIDs: []int{job.Process.Pid}, BufferBytes: 4 << 20, catalog: groups}, sink)
	if err != nil {
		t.Fatal(err)
	}
	var code string
	for _, f := range trial.session.files {
		code = f.plan.Path
	}
	before := textOf(t, job.Process.Pid, code)
	io.WriteString(stdin, "go\n")
	times := timesInAndOut()
	for range times {
		if err := trial.Attach(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
		if err := trial.Detach(); err != nil {
			t.Fatal(err)
		}
	}
	if trial.Sites() == 0 {
		t.Error("no probe was ever in")
	}
	if after := textOf(t, job.Process.Pid, code); after != before {
		t.Error("the job's code is not what it was before the probes")
	}
	if err := trial.Close(); err != nil {
		t.Error(err)
	}
	job.Process.Signal(syscall.SIGTERM)
	lines.Scan()
	var said struct{ Truth nativeTruth }
	if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
		t.Fatalf("the job said %q: %v", lines.Text(), err)
	}
	if err := job.Wait(); err != nil {
		t.Errorf("the job, or a child of it, was harmed: %v", err)
	}
	rounds := said.Truth.Calls["Worker::work"]
	if thrown, want := said.Truth.Threw["Worker::work"], rounds/4; thrown != want || rounds == 0 {
		t.Errorf("%d rounds, %d exceptions caught, want %d", rounds, thrown, want)
	}
	if sink.spans == 0 {
		t.Error("no call was recorded")
	}
	t.Logf("in and out %d times, %d rounds, %d spans", times, rounds, sink.spans)
}

// textOf is the executable part of a file as a process has it mapped.
func textOf(t *testing.T, pid int, path string) string {
	t.Helper()
	maps, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open("/proc/" + strconv.Itoa(pid) + "/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	for line := range strings.Lines(string(maps)) {
		var start, end uint64
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[1] != "r-xp" || fields[5] != path {
			continue
		}
		fmt.Sscanf(fields[0], "%x-%x", &start, &end)
		text := make([]byte, end-start)
		if _, err := memory.ReadAt(text, int64(start)); err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	t.Fatalf("%s is not mapped", path)
	return ""
}
