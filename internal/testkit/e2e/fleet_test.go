package e2e

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// fleetAnswer is what the test reads of `fleet report --json`.
type fleetAnswer struct {
	Verdict string `json:"verdict"`
	Workers []struct {
		Rank int32  `json:"rank"`
		Host string `json:"host"`
	} `json:"workers"`
	Findings []struct {
		Kind     string                       `json:"kind"`
		Class    string                       `json:"class"`
		Function string                       `json:"function"`
		Workers  []struct{ Rank, PID int32 }  `json:"workers"`
		Cause    struct{ Class, Name string } `json:"cause"`
	} `json:"findings"`
	WhatIf *struct {
		S       float64 `json:"S"`
		Workers []struct {
			Rank int     `json:"rank"`
			S    float64 `json:"S_w"`
		} `json:"workers"`
	} `json:"what_if"`
}

func fleetReport(t *testing.T, store string) (answer fleetAnswer) {
	t.Helper()
	out, err := exec.Command(harness.Binary, "fleet", "report", store, "--json").Output()
	if err != nil {
		t.Fatalf("fleet report: %v", err)
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// names says whether the first special finding is of the rank and the function.
func (a fleetAnswer) names(rank int32, function string) bool {
	for _, f := range a.Findings {
		if f.Kind == "special" {
			return f.Workers[0].Rank == rank && strings.Contains(f.Function, function)
		}
	}
	return false
}

var faults = []struct{ fault, function string }{
	{"loader", "__getitem__"}, {"python", "tokenize"}, {"gc", "garbage collection"},
}

// Recordings of real ranks, made patterns and compared: the planted rank and function
// come first, and the replay finds the same worker.
func TestTheSlowRankIsNamedFromRecordings(t *testing.T) {
	harness.PyPI.Need(t)
	for _, c := range faults {
		t.Run(c.fault, func(t *testing.T) {
			job := harness.Start(t, harness.PyPI.Job("straggler.py", "--fault", c.fault, "--after", "0", "--seconds", "60")...)
			pids := stragglerPIDs(t, job)
			job.Line(t, "running")
			tracing := harness.Attach(t, []string{"--duration", "8s"}, pids...)
			if code, err := tracing.Wait(); err != nil || code != 0 {
				t.Fatalf("attach: %d, %v\n%s", code, err, tracing.Transcript())
			}
			store := filepath.Join(t.TempDir(), "store")
			if out, err := exec.Command(harness.Binary, "fleet", "upload", "--store", store, tracing.Dataset).CombinedOutput(); err != nil {
				t.Fatalf("fleet upload: %v\n%s", err, out)
			}
			a := fleetReport(t, store)
			if !a.names(1, c.function) || len(a.Workers) != 3 {
				t.Errorf("%s\n%+v", a.Verdict, a.Findings)
			}
			if a.WhatIf == nil || a.WhatIf.S < 1.03 || a.WhatIf.Workers[0].Rank != 1 {
				t.Errorf("what if: %+v", a.WhatIf)
			}
		})
	}
}

// A job whose steps are so short that the budget has what they are made of in slices shows no
// step. Its ranks are compared all the same, by the patterns of their samples.
func agentsNameTheSlowRankOfAJobInSlices(t *testing.T) {
	dir := t.TempDir()
	store, name := filepath.Join(dir, "store"), fmt.Sprintf("sliced-%d", os.Getpid())
	job := harness.Start(t, harness.PyPI.Job("straggler.py", "--fault", "python", "--after", "0", "--seconds", "1000", "--job", name)...)
	pids := stragglerPIDs(t, job)
	job.Line(t, "running")
	// The budget is half of what the backward passes cost, so that even these, the anchors of
	// steps, have to go into slices, however cheap a hit is on this machine.
	price := priced(t, harness.Attach(t, append(priceOf("backward"), "--duration", "5s"), pids...).Finish(t))
	a := startAgent(t, buildAgent(t, dir), dir, "node", fmt.Sprintf("store: %s\nonly: [%s]\nslower_than: 1000\nbudget: %.6f%%\n", store, name,
		price/2))
	a.says(t, "are recorded in slices to keep within the budget")
	// What was seen before that is no matter here.
	if err := os.RemoveAll(filepath.Join(store, "v1")); err != nil {
		t.Fatal(err)
	}
	var last fleetAnswer
	wait(t, "report that names the rank", func() bool {
		if files, _ := filepath.Glob(filepath.Join(store, "v1", "pattern", "*", "*", "*", "*.parquet")); len(files) == 0 {
			return false
		}
		last = fleetReport(t, store)
		return len(last.Workers) == 3 && last.names(1, "tokenize")
	}, a)
	if last.WhatIf != nil {
		t.Errorf("of no step it is told what would be: %+v", last.WhatIf)
	}
}

func stragglerPIDs(t *testing.T, job *harness.Command) (pids []int) {
	t.Helper()
	job.Line(t, "started ")
	for _, field := range strings.Fields(job.Lines()[0])[1:] {
		var pid int
		if _, err := fmt.Sscan(field, &pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func buildAgent(t *testing.T, dir string) (binary string) {
	t.Helper()
	binary = filepath.Join(dir, "ebpfprof-agent")
	build := exec.Command("go", append(harness.BuildLine(binary), "../../../cmd/ebpfprof-agent")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// agent is an ebpfprof-agent as one of several hosts.
type agent struct {
	*harness.Command
	spool string
}

func startAgent(t *testing.T, binary, dir, host, config string) agent {
	t.Helper()
	a := agent{spool: filepath.Join(dir, host)}
	file := filepath.Join(dir, host+".yaml")
	text := fmt.Sprintf("host: %s\nspool: %s\nlisten: 127.0.0.1:0\nevery: 1s\nsettle: 3s\nwindow: 6s\nflush: 5s\ncooldown: 5s\n%s", host,
		a.spool, config)
	if !strings.Contains(config, "canary:") {
		text += "canary: 1s\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a.Command = harness.Start(t, binary, "--config", file)
	a.says(t, "address=")
	return a
}

// says waits for a line of the log.
func (a agent) says(t *testing.T, text string) {
	t.Helper()
	a.Until(t, text, func(_ []string, errs string) bool { return strings.Contains(errs, text) })
}

// steps asks the agent how many steps it has seen.
func (a agent) steps(t *testing.T) (n int64) {
	t.Helper()
	_, address, _ := strings.Cut(a.Transcript(), "address=")
	r, err := http.Get("http://" + strings.Fields(address)[0] + "/jobs")
	if err != nil {
		t.Fatalf("%v\n%s", err, a.Transcript())
	}
	defer r.Body.Close()
	var jobs []struct{ Status struct{ Steps int64 } }
	if err := json.NewDecoder(r.Body).Decode(&jobs); err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs {
		n += job.Status.Steps
	}
	return n
}

// windows are the begins of those that it recorded, as its spool names them.
func (a agent) windows(t *testing.T) (begins []string) {
	t.Helper()
	raw, err := filepath.Glob(filepath.Join(a.spool, "*", "span", "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range raw {
		if strings.HasSuffix(filepath.Dir(filepath.Dir(file)), "-failed") {
			continue // a job's last moments
		}
		begin, _, _ := strings.Cut(filepath.Base(filepath.Dir(filepath.Dir(file))), "-")
		begins = append(begins, begin)
	}
	return begins
}

// wait waits for a condition that no process tells of.
func wait(t *testing.T, what string, met func() bool, agents ...agent) {
	t.Helper()
	for deadline := time.Now().Add(harness.Patience); !met(); time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			for _, a := range agents {
				t.Log(a.Transcript())
			}
			t.Fatalf("no %s in %s", what, harness.Patience)
		}
	}
}

// collector keeps the profiles that it is sent.
type collector struct {
	mu  sync.Mutex
	got []pprofile.Profiles
}

// ServeHTTP implements http.Handler.
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	z, err := gzip.NewReader(r.Body)
	var plain []byte
	if err == nil {
		plain, err = io.ReadAll(z)
	}
	var p pprofile.Profiles
	if err == nil {
		p, err = (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(plain)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, p)
}

// has says whether there is a profile of a rank on a host, with a function.
func (c *collector) has(host string, rank int64, function string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.got {
		for _, r := range p.ResourceProfiles().All() {
			of := r.Resource().Attributes().AsRaw()
			if of["host.name"] == host && of["ebpfprof.rank"] == rank && slices.Contains(p.Dictionary().StringTable().AsRaw(), function) {
				return true
			}
		}
	}
	return false
}

// Two agents, as of two hosts, find their ranks of one job. One notices by itself that
// the job became slow, and its request, signed, has the other, which could not notice
// anything, record the same window; the patterns of both name the rank. Nobody told
// them anything.
func TestTheAgentNoticesASlowRankByItself(t *testing.T) {
	harness.PyPI.Need(t)
	dir := t.TempDir()
	binary := buildAgent(t, dir)
	store, key, name := filepath.Join(dir, "store"), filepath.Join(dir, "key"), fmt.Sprintf("straggler-%d", os.Getpid())
	if err := os.WriteFile(key, []byte("0123456789abcdef0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("store: %s\nkey_file: %s\nonly: [%s]\n", store, key, name)
	one := startAgent(t, binary, dir, "node-a", config+"ranks: [0, 1]\n")
	profiles := &collector{}
	address := httptest.NewServer(profiles)
	defer address.Close()
	two := startAgent(t, binary, dir, "node-b", config+"ranks: [2]\nslower_than: 1000\notlp: "+address.URL+"\n")
	job := harness.Start(t, harness.PyPI.Job("straggler.py", "--fault", "loader", "--after", "1000000000", "--seconds", "1000", "--job",
		name)...)
	pids := stragglerPIDs(t, job)
	job.Line(t, "running")
	// Twice the steps whose mean counts: there is a best mean to compare with.
	wait(t, "steps", func() bool { return one.steps(t) >= 200 && two.steps(t) >= 100 }, one, two)
	// On a busy machine a window may have been taken already, of noise: what was asked for
	// from now on counts.
	noise := map[*agent]int{&one: strings.Count(one.Transcript(), "state=window"), &two: strings.Count(two.Transcript(), "state=window")}
	signal := time.Now().UTC().Format("20060102T150405Z")
	if err := syscall.Kill(pids[1], syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	for a, reason := range map[*agent]string{&one: "state=window reason=slow", &two: "state=window reason=peer:slow"} {
		a.Until(t, reason, func(_ []string, errs string) bool {
			all := strings.SplitAfter(errs, "state=window") // each ends with it, the next begins with why
			after := func(text string) bool { return strings.HasPrefix("state=window"+text, reason) }
			return slices.ContainsFunc(all[min(noise[a]+1, len(all)):], after)
		})
	}
	wait(t, "window of both that begins at one time", func() bool {
		theirs := two.windows(t)
		return slices.ContainsFunc(one.windows(t), func(begin string) bool { return begin > signal && slices.Contains(theirs, begin) })
	}, one, two)
	var answer fleetAnswer
	wait(t, "report that names the rank", func() bool {
		if _, err := os.Stat(filepath.Join(store, "v1", "pattern")); err == nil {
			answer = fleetReport(t, store)
		}
		return answer.names(1, "__getitem__") && len(answer.Workers) == 3
	}, one, two)
	for i, host := range []string{"node-a", "node-a", "node-b"} {
		if w := answer.Workers[i]; w.Host != host || int(w.Rank) != i {
			t.Errorf("worker %d is rank %d on %s, not on %s", i, w.Rank, w.Host, host)
		}
	}
	// The same window, for a collector of OpenTelemetry's.
	wait(t, "profile of the window", func() bool { return profiles.has("node-b", 2, "rank") }, two)
	// SIGTERM ends an agent, its worker and every probe; the job goes on.
	for _, a := range []agent{one, two} {
		if err := a.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range []agent{one, two} {
		if code, err := a.Wait(); err != nil || code != 0 {
			t.Errorf("the agent ended with %d, %v\n%s", code, err, a.Transcript())
		}
	}
	if err := job.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("the job did not go on: %v", err)
	}
	if code, err := job.Wait(); err != nil || code != 0 {
		t.Errorf("the job ended with %d, %v", code, err)
	}
}
