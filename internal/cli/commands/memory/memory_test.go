package memory

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program is where the command is, compiled for the first test that asks.
var program struct {
	directory string
	compile   sync.Once
	failed    error
}

func TestMain(m *testing.M) {
	directory, err := os.MkdirTemp("", "ebpfprof-memory-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program.directory = directory
	code := m.Run()
	os.RemoveAll(directory)
	os.Exit(code)
}

// built is the path of the compiled command.
func built(t *testing.T) string {
	t.Helper()
	path := filepath.Join(program.directory, "ebpfprof")
	program.compile.Do(func() {
		if out, err := exec.Command("go", "build", "-tags", "reader", "-o", path, "../../../../cmd/ebpfprof").CombinedOutput(); err != nil {
			program.failed = fmt.Errorf("%w: %s", err, out)
		}
	})
	if program.failed != nil {
		t.Fatal(program.failed)
	}
	return path
}

func instanceFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "blocks.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSolveCommand: the documented JSON, offsets in the file's order, capacities,
// fixed offsets, mistakes with their lines, and Ctrl-C.
func TestSolveCommand(t *testing.T) {
	command := built(t)
	file := instanceFile(t, "id,lower,upper,size\nb,0,3,4\n7,3,9,9\na,3,9,9\n")
	fixed := instanceFile(t, "id,offset\na,0\n")
	for _, c := range []struct {
		arguments []string
		feasible  string
		fixedAt   bool
	}{{nil, "null", false}, {[]string{"--capacity", "18"}, "true", false}, {[]string{"--capacity", "17"}, "false", false},
		{[]string{"--fixed", fixed}, "null", true}} {
		out, err := exec.Command(command, append([]string{"memory", "solve", file, "--json"}, c.arguments...)...).Output()
		if err != nil {
			t.Fatalf("%v: %v", c.arguments, err)
		}
		var answer struct {
			LowerBound int64           `json:"lower_bound"`
			Peak       int64           `json:"peak"`
			Gap        *float64        `json:"gap"`
			Solver     string          `json:"solver"`
			Seconds    *float64        `json:"seconds"`
			Feasible   json.RawMessage `json:"feasible"`
			Offsets    []struct {
				ID     any   `json:"id"`
				Offset int64 `json:"offset"`
			} `json:"offsets"`
		}
		if err := json.Unmarshal(out, &answer); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if answer.LowerBound != 18 || answer.Peak != 18 || answer.Gap == nil || *answer.Gap != 0 || answer.Solver == "" ||
			answer.Seconds == nil || string(answer.Feasible) != c.feasible {
			t.Errorf("%v: %s", c.arguments, out)
		}
		if len(answer.Offsets) != 3 || answer.Offsets[0].ID != "b" || answer.Offsets[1].ID != 7.0 || answer.Offsets[2].ID != "a" {
			t.Fatalf("%v: offsets %v", c.arguments, answer.Offsets)
		}
		if c.fixedAt && answer.Offsets[2].Offset != 0 {
			t.Errorf("a fixed block moved: %v", answer.Offsets)
		}
	}
	for text, want := range map[string]string{
		"id,lower,upper,size\nb,3,0,4\n": "line 2: the lifetime [3, 0) ends before it begins",
		"id,lower,size\n":                "line 1: the header has no column upper",
	} {
		out, err := exec.Command(command, "memory", "solve", instanceFile(t, text)).CombinedOutput()
		var exit *exec.ExitError
		if !asExit(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v: %s", text, err, out)
		}
	}
	for _, wrong := range [][]string{{}, {file, "--time", "0s"}, {file, "--capacity", "much"}} {
		err := exec.Command(command, append([]string{"memory", "solve"}, wrong...)...).Run()
		var exit *exec.ExitError
		if !asExit(err, &exit) || exit.ExitCode() != 2 {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

func asExit(err error, to **exec.ExitError) bool {
	exit, is := err.(*exec.ExitError)
	*to = exit
	return is
}

// TestSolveIsInterrupted: Ctrl-C ends a search with its best plan, and exit code 0.
func TestSolveIsInterrupted(t *testing.T) {
	command := built(t)
	var text strings.Builder
	text.WriteString("id,lower,upper,size\n")
	state := uint64(1)
	random := func(n uint64) uint64 {
		state = state*6364136223846793005 + 1442695040888963407
		return (state >> 33) % n
	}
	for i := range 600 {
		lower := random(60)
		text.WriteString(strings.Join([]string{digits(uint64(i)), digits(lower), digits(lower + 1 + random(40)), digits(1 + random(50))},
			",") + "\n")
	}
	job := exec.Command(command, "memory", "solve", instanceFile(t, text.String()), "--json", "--time", "5m")
	var out strings.Builder
	job.Stdout = &out
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	if err := job.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := job.Wait(); err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Interrupted, Optimal bool
		Peak                 int64
		Offsets              []any
	}
	if err := json.Unmarshal([]byte(out.String()), &answer); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if !answer.Interrupted && !answer.Optimal || answer.Peak == 0 || len(answer.Offsets) != 600 {
		t.Errorf("interrupted %v, optimal %v, peak %d, %d offsets", answer.Interrupted, answer.Optimal, answer.Peak, len(answer.Offsets))
	}
}

func digits(n uint64) string {
	text, _ := json.Marshal(n)
	return string(text)
}

// A snapshot is anybody's: its files and functions may be called anything.
func TestMemoryObeysNoNameOfASnapshot(t *testing.T) {
	const name = `\u001b]0;owned\u0007\u001b[2J.py`
	frames := `[{"filename":"/job/` + name + `","name":"f` + name + `","line":3}]`
	text := `{"segments":[],"device_traces":[[` +
		`{"action":"alloc","addr":4096,"size":512,"stream":0,"time_us":1,"frames":` + frames + `},` +
		`{"action":"alloc","addr":8192,"size":1024,"stream":0,"time_us":2,"frames":` + frames + `}]]}`
	file := filepath.Join(t.TempDir(), "snapshot.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program := built(t)
	for _, arguments := range [][]string{{"memory", file}, {"memory", file, "--json"}, {"memory", "plan", file}} {
		out, err := exec.Command(program, arguments...).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v: %q", arguments, err, out)
		}
		if strings.ContainsAny(string(out), "\x1b\x07") {
			t.Errorf("%q prints what a terminal obeys: %q", arguments, out)
		}
		if arguments[1] == file && !strings.Contains(string(out), "owned") {
			t.Errorf("%q does not name the line at all: %s", arguments, out)
		}
	}
}

// TestExportEndsASnapshotAtThePeak: by either command, compressed where the name says so, and what is no such time is
// refused.
func TestExportEndsASnapshotAtThePeak(t *testing.T) {
	program, dir := built(t), t.TempDir()
	run := func(arguments ...string) string {
		t.Helper()
		out, err := exec.Command(program, arguments...).Output()
		if err != nil {
			t.Fatalf("%q: %v", arguments, err)
		}
		return string(out)
	}
	text := `{"segments":[],"device_traces":[[` +
		`{"action":"alloc","addr":4096,"size":512,"stream":0,"time_us":1,"frames":[]},` +
		`{"action":"alloc","addr":8192,"size":1024,"stream":0,"time_us":2,"frames":[]},` +
		`{"action":"free_completed","addr":4096,"size":512,"stream":0,"time_us":3,"frames":[]},` +
		`{"action":"alloc","addr":16384,"size":256,"stream":0,"time_us":4,"frames":[]}]]}`
	first, dataset := filepath.Join(dir, "first.json"), filepath.Join(dir, "dataset")
	if err := os.WriteFile(first, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run("import", first, "--output", dataset, "--quiet")
	for name, c := range map[string]struct {
		arguments []string
		atEnd     int64
	}{
		"end":         {[]string{"export", dataset, "--format", "memory_viz"}, 1280},
		"peak":        {[]string{"export", dataset, "--format", "memory_viz", "--at", "peak"}, 1536},
		"memory peak": {[]string{"memory", "export", dataset, "--at", "peak"}, 1536},
		"peak.gz":     {[]string{"export", dataset, "--format", "memory_viz", "--at", "peak"}, 1536},
	} {
		path := filepath.Join(dir, name)
		run(append(c.arguments, "--output", path)...)
		if strings.HasSuffix(name, ".gz") {
			if out, err := exec.Command("gunzip", "--force", path).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			path = strings.TrimSuffix(path, ".gz")
		}
		var answer struct {
			Arenas []struct {
				PeakBytes int64 `json:"peak_bytes"`
				EndBytes  int64 `json:"end_bytes"`
			} `json:"arenas"`
		}
		if err := json.Unmarshal([]byte(run("memory", path, "--json")), &answer); err != nil {
			t.Fatal(err)
		}
		if len(answer.Arenas) != 1 || answer.Arenas[0].PeakBytes != 1536 || answer.Arenas[0].EndBytes != c.atEnd {
			t.Errorf("%s: %+v, want %d bytes at its end", name, answer, c.atEnd)
		}
	}
	for _, wrong := range [][]string{{"--format", "memory_viz", "--at", "noon"}, {"--format", "perfetto", "--at", "peak"}} {
		if out, err := exec.Command(program, append([]string{"export", dataset, "-o", filepath.Join(dir, "x")},
			wrong...)...).CombinedOutput(); err == nil {
			t.Errorf("%q is taken: %s", wrong, out)
		}
	}
}
