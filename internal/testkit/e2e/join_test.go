package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// behind is how far the second host's clock is set back.
const behind = int64(3_000_000_000)

// host is a network of its own, with one rank in it. The second has a boot id and a clock of its own as well, by a time
// namespace around its recorder: what a kernel cannot tell of one host there, the clock's offset in the dataset tells us.
type host struct {
	name string
	rank *harness.Command
}

func ip(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", line, err, out)
	}
}

// hosts are two networks with a wire between them, and a rank of a job in each that waits for the file.
func hosts(t *testing.T, gate string) (all []host) {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("there is no program ip to make networks with")
	}
	names := []string{fmt.Sprintf("ebpfprof-%d-0", os.Getpid()), fmt.Sprintf("ebpfprof-%d-1", os.Getpid())}
	for _, name := range names {
		ip(t, "netns add "+name)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	}
	ip(t, fmt.Sprintf("link add wire netns %s type veth peer name wire netns %s", names[0], names[1]))
	for rank, name := range names {
		ip(t, fmt.Sprintf("-n %s addr add 10.231.7.%d/24 dev wire", name, rank+1))
		ip(t, fmt.Sprintf("-n %s link set wire up", name))
		ip(t, fmt.Sprintf("-n %s link set lo up", name))
		line := []string{"ip", "netns", "exec", name, "env", fmt.Sprintf("RANK=%d", rank), "LOCAL_RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=1",
			"MASTER_ADDR=10.231.7.1", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=e2e", "GLOO_SOCKET_IFNAME=wire"}
		wait := fmt.Sprintf("while [ ! -e %s ]; do sleep 0.1; done; exec %s", gate, strings.Join(harness.PyPI.Job("gloo.py", "--ranks", "2",
			"--steps", "30"), " "))
		all = append(all, host{name, harness.Start(t, append(line, "/bin/sh", "-c", wait)...)})
	}
	return all
}

// Two hosts' recordings of a real job become one, whose clocks are found within the error that is stated.
func TestRecordingsOfTwoHostsAreJoined(t *testing.T) {
	harness.PyPI.Beside(t)
	gate := filepath.Join(t.TempDir(), "go")
	two := hosts(t, gate)
	boot := filepath.Join(t.TempDir(), "boot_id")
	if err := os.WriteFile(boot, []byte("11111111-2222-3333-4444-555555555555\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	first := harness.Attach(t, harness.Unbudgeted, two[0].rank.Process.Pid)
	script := fmt.Sprintf(`mount --bind %s /proc/sys/kernel/random/boot_id && exec "$@"`, boot)
	line := append([]string{"unshare", "--fork", "--kill-child", "--mount", "--time", "--monotonic", fmt.Sprint(behind / 1e9), "sh", "-c",
		script, "sh",
		harness.Binary, "attach"}, harness.Unbudgeted...)
	second := harness.AttachWith(t, append(line, "--pid", fmt.Sprint(two[1].rank.Process.Pid))...)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, h := range two {
		h.rank.FinishJob(t)
	}
	a, b := first.Finish(t), second.Finish(t)
	offset := func(r *harness.Recording) int64 { return r.Number(t, "SELECT clock_offset_ns FROM session") }
	truth := offset(b) - offset(a)
	if apart := truth + behind; apart < -1e8 || apart > 1e8 {
		t.Fatalf("the clocks were not set apart: they differ by %d ns", truth)
	}
	dir := filepath.Join(t.TempDir(), "joined")
	out, err := exec.Command(harness.Binary, "join", b.Dataset, a.Dataset, "--output", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	joined := &harness.Recording{Dataset: dir}
	ahead, wrong := joined.Number(t, "SELECT ahead_ns FROM clock WHERE method = 'collectives'"),
		joined.Number(t, "SELECT error_ns FROM clock WHERE method = 'collectives'")
	if off := ahead - truth; max(off, -off) > wrong || wrong > 1e9 {
		t.Errorf("a clock that is %d ns ahead is found to be %d ± %d ns ahead\n%s", truth, ahead, wrong, out)
	}
	t.Logf("%s", out)
	// Nobody leaves a collective of all before all have entered it, by the common clock.
	early := joined.Number(t, `SELECT count(*) FROM (SELECT communicator, sequence_number, max(ts_ns) - min(ts_ns + duration_ns) AS early
		FROM span
		WHERE category = 'work' AND (communicator, sequence_number) IN (SELECT (communicator, sequence_number) FROM span
		WHERE name IN ('gloo::allreduce', 'gloo::barrier'))
		GROUP BY ALL HAVING count(DISTINCT pid) = 2) WHERE early > 10000`)
	if early > 0 {
		t.Errorf("%d collectives ended on one rank before they began on the other", early)
	}
	for _, sql := range []string{"SELECT count(*) FROM span", "SELECT count(*) FROM sample", "SELECT count(*) FROM process"} {
		if all, parts := joined.Number(t, sql), a.Number(t, sql)+b.Number(t, sql); all != parts {
			t.Errorf("%s: %d joined, %d of the two", sql, all, parts)
		}
	}
	// Where two clocks differ by more than a collective takes a step's ranks cannot be joined: not in each step.
	through := 0
	for step := 10; step < 20 && through < 2; step++ {
		var path struct {
			Ranks []struct{ Rank int } `json:"ranks"`
		}
		if out, err = exec.Command(harness.Binary, "critical-path", dir, "--json", "--step", strconv.Itoa(step)).Output(); err == nil {
			err = json.Unmarshal(out, &path)
		}
		if err != nil {
			t.Fatalf("the critical path of step %d: %v", step, err)
		}
		through = max(through, len(path.Ranks))
	}
	if through != 2 {
		t.Errorf("the path of ten steps goes through %d ranks of 2 hosts", through)
	}
	if out, err = exec.Command(harness.Binary, "join", a.Dataset, a.Dataset, "--output", filepath.Join(t.TempDir(),
		"twice")).CombinedOutput(); err == nil {
		t.Errorf("a recording was joined with itself: %s", out)
	}
}
