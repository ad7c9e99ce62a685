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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// timesInAndOut is how often the probes go in and out: 2,000 before a merge, as many
// as EBPFPROF_IN_OUT says in the soak.
func timesInAndOut() int {
	if n, err := strconv.Atoi(os.Getenv("EBPFPROF_IN_OUT")); err == nil {
		return n
	}
	return 2000
}

// recordingsAtOnce put their probes in and out over each other: most of a round is the
// wait until the kernel has forgotten the probes that went.
const recordingsAtOnce = 4

// All probes go in and out, thousands of times, at random instants, by four recordings
// that do not wait for each other, under a job that throws through them and forks. It
// does what it does without them, and nothing of them is left in its code.
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
	groups := nativeGroup("libthrower-both", spec.ExitSites, map[string]string{
		"maybe": "_ZN7thrower5maybeEl", "nested": "_ZN7thrower6nestedEll",
		"shielded": "_ZN7thrower8shieldedEl", "Worker::work": "_ZN7thrower6Worker4workEl",
	})
	var sinks [recordingsAtOnce]nowhere
	var trials [recordingsAtOnce]*Trial
	var code string
	for i := range trials {
		trial, err := OpenTrial(t.Context(), Options{PIDs: []int{job.Process.Pid}, BufferBytes: 4 << 20, catalog: groups}, &sinks[i])
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range trial.session.probes.Files() {
			code = f.Path()
		}
		trials[i] = trial
	}
	before := textOf(t, job.Process.Pid, code)
	io.WriteString(stdin, "go\n")
	times := timesInAndOut()
	var left atomic.Int64
	left.Store(int64(times))
	ended := make(chan error, len(trials))
	var sites [recordingsAtOnce]int
	for i, trial := range trials {
		go func() { ended <- inAndOut(trial, &left, &sites[i]) }()
	}
	for range trials {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	if after := textOf(t, job.Process.Pid, code); after != before {
		t.Error("the job's code is not what it was before the probes")
	}
	spans := 0
	for i, trial := range trials {
		if sites[i] == 0 {
			t.Errorf("recording %d never had a probe in", i)
		}
		if err := trial.Close(); err != nil {
			t.Error(err)
		}
		spans += sinks[i].spans
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
	if spans == 0 {
		t.Error("no call was recorded")
	}
	t.Logf("in and out %d times, %d rounds, %d spans", times, rounds, spans)
}

// inAndOut puts all probes in and out until the rounds of all recordings are done; sites is how many places had one
// at the most.
func inAndOut(trial *Trial, left *atomic.Int64, sites *int) error {
	for left.Add(-1) >= 0 {
		if err := trial.Attach(); err != nil {
			return err
		}
		*sites = max(*sites, trial.Sites())
		time.Sleep(rand.N(2 * time.Millisecond))
		if err := trial.Detach(); err != nil {
			return err
		}
	}
	return nil
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
