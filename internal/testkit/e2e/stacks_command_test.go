package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// stacksOutput is what `ebpfprof stacks --json` writes.
type stacksOutput struct {
	WeightNS  int64 `json:"weight_ns"`
	Functions []struct {
		Function, Kind string
		SelfNS         int64 `json:"self_ns"`
		TotalNS        int64 `json:"total_ns"`
	}
	Stacks []struct {
		WeightNS int64 `json:"weight_ns"`
		Cut      string
	}
}

func stacksOf(t *testing.T, r *harness.Recording, flags ...string) (o stacksOutput) {
	t.Helper()
	out, err := exec.Command(harness.Binary, append([]string{"stacks", r.Dataset, "--json", "--top", "100000"}, flags...)...).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := json.Unmarshal(out, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// total is the time in a function and below it.
func (o stacksOutput) total(label string) int64 {
	for _, f := range o.Functions {
		if f.Function == label {
			return f.TotalNS
		}
	}
	return 0
}

// TestStacksShowWhereTheProcessorTimeWent compares the time in one function
// with what the job measured of itself, and looks at it with top meanwhile.
func TestStacksShowWhereTheProcessorTimeWent(t *testing.T) {
	harness.Debian.Need(t)
	const seconds = 4
	job := harness.StartJob(t, harness.Debian.Job("busy.py", "--seconds", fmt.Sprint(seconds), "--megabytes", "1")...)
	pid := job.ReadyPID(t)
	a := harness.Attach(t, nil, pid)
	top := harness.Start(t, harness.Binary, "top", "--pid", fmt.Sprint(pid))
	top.Until(t, "its first page", func(out []string, _ string) bool { return strings.Contains(strings.Join(out, "\n"), "%own") })
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", top.Process.Pid))
	if err != nil || !bytes.Contains(status, []byte("NoNewPrivs:\t1\nSeccomp:\t2")) {
		t.Errorf("top is not confined (%v):\n%s", err, status)
	}
	job.GoOn(t)
	job.FinishJob(t)
	r := a.Finish(t)

	const spin = "spin (busy.py)"
	all := stacksOf(t, r)
	if got := float64(all.total(spin)) / 1e9; math.Abs(got-seconds) > 0.1*seconds {
		t.Errorf("%.2f s in spin, it used %d", got, seconds)
	}
	if held := stacksOf(t, r, "--gil").total(spin); held < all.total(spin)*8/10 {
		t.Errorf("%d ns of %d in spin with the GIL, which it never gives up by itself", held, all.total(spin))
	}
	cut := int64(0)
	for _, s := range all.Stacks {
		if s.Cut != "" {
			cut += s.WeightNS
		}
	}
	if cut*100 > all.WeightNS {
		t.Errorf("%d of %d ns in stacks that are cut", cut, all.WeightNS)
	}
	if code, err := top.Wait(); code != 0 || err != nil || !strings.Contains(top.Transcript(), spin) {
		t.Errorf("top: exit code %d, %v\n%s", code, err, top.Transcript())
	}
}
