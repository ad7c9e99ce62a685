package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// tickNS is what /proc/stat counts in.
const tickNS = int64(10 * time.Millisecond)

// machineTotals are what the kernel's own files say at a moment: read around a
// recording, they bound what it may have counted.
type machineTotals struct {
	userNS   int64 // of one processor
	sent     int64 // bytes on the loopback interface
	written  int64 // bytes, the most of any disk
	disk     string
	occurred time.Time
}

func readMachine(t *testing.T, cpu int, disk string) machineTotals {
	t.Helper()
	m := machineTotals{occurred: time.Now(), disk: disk}
	fields := func(file, word string, at int) []string {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if f := strings.Fields(strings.ReplaceAll(line, ":", " ")); len(f) > at && f[at] == word {
				return f
			}
		}
		t.Fatalf("%s has no line of %s", file, word)
		return nil
	}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	// Of a job that was made nice, and so of one whose shell was, user time counts as nice.
	states := fields("/proc/stat", fmt.Sprintf("cpu%d", cpu), 0)
	m.userNS = (number(states[1]) + number(states[2])) * tickNS
	m.sent = number(fields("/proc/self/net/dev", "lo", 0)[9])
	m.written = number(fields("/proc/diskstats", disk, 2)[9]) * 512
	return m
}

// diskOf names the block device under a directory, "" where there is none to name.
func diskOf(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("findmnt", "-n", "-o", "MAJ:MIN", "-T", dir).Output()
	if err != nil {
		return ""
	}
	number := strings.Split(strings.TrimSpace(string(out)), ":")
	content, _ := os.ReadFile("/proc/diskstats")
	for line := range strings.Lines(string(content)) {
		if f := strings.Fields(line); len(f) > 3 && len(number) == 2 && f[0] == number[0] && f[1] == number[1] {
			return f[2]
		}
	}
	return ""
}

// TestCountersAgreeWithWhatTheJobUsed: the recorded growth is at least what the
// job knows it used, and at most what the kernel's own files grew by around it.
func TestCountersAgreeWithWhatTheJobUsed(t *testing.T) {
	harness.Debian.Need(t)
	cpu := runtime.NumCPU() - 1
	disk := diskOf(t, harness.Scratch)
	if disk == "" {
		t.Skip("no disk is under the temporary directory")
	}
	job := harness.StartJob(t, harness.Debian.Job("busy.py", "--cpu", fmt.Sprint(cpu), "--directory", harness.Scratch)...)
	before := readMachine(t, cpu, disk)
	tracing := harness.Attach(t, []string{"--counters", "250ms"}, job.Process.Pid)
	job.GoOn(t)
	told := job.FinishJob(t)
	r := tracing.Finish(t)
	after := readMachine(t, cpu, disk)

	total := func(name, device string) int64 {
		return r.Number(t, "SELECT CAST(sum(value) AS BIGINT) FROM counter WHERE kind = 'delta' AND name = '%s' AND device = '%s'", name, device)
	}
	one := fmt.Sprintf("cpu%d", cpu)
	for _, x := range []struct {
		what              string
		got, least, slack int64
		outsideOf, upTo   int64
	}{
		{"user time of the job's CPU, ns", total("cpu_user", one) + total("cpu_nice", one), told.UserNS, 3 * tickNS, before.userNS, after.userNS},
		{"bytes sent on lo", total("network_sent", "lo"), told.Bytes, 0, before.sent, after.sent},
		{"bytes written to " + disk, total("disk_written", disk), told.Bytes, 0, before.written, after.written},
	} {
		t.Logf("%s: %d recorded; the job used %d, the machine %d", x.what, x.got, x.least, x.upTo-x.outsideOf)
		if x.least <= 0 || x.got < x.least-x.slack || x.got > x.upTo-x.outsideOf {
			t.Errorf("%s: %d recorded, want between %d, the job's own, and %d, the machine's", x.what, x.got, x.least-x.slack, x.upTo-x.outsideOf)
		}
	}
	checkPeriods(t, r, after.occurred.Sub(before.occurred))
}

// checkPeriods: the periods of a counter follow upon each other without a gap,
// and a processor's states add up to them.
func checkPeriods(t *testing.T, r *harness.Recording, most time.Duration) {
	t.Helper()
	for _, row := range r.Rows(t, `SELECT source, name, device, count(*) FROM (
		SELECT *, ts_ns - period_ns - lag(ts_ns) OVER (PARTITION BY source, device, scope, pid, name ORDER BY ts_ns) AS gap
		FROM counter WHERE kind = 'delta' AND name NOT IN ('cpu_iowait', 'cpu_idle')) WHERE gap != 0 GROUP BY ALL`) {
		t.Errorf("periods with gaps or overlaps: %v", row)
	}
	// What a host takes of a virtual CPU that is idle, Linux counts as idle and as stolen.
	for _, row := range r.Rows(t, `SELECT device, CAST(sum(value) FILTER (name != 'cpu_steal') AS BIGINT),
		CAST(sum(period_ns) FILTER (name = 'cpu_user') AS BIGINT),
		CAST(sum(value) FILTER (name = 'cpu_steal') AS BIGINT)
		FROM counter WHERE source = 'cpu' GROUP BY ALL`) {
		states, elapsed, stolen := harness.Integer(t, row[1]), harness.Integer(t, row[2]), harness.Integer(t, row[3])
		if elapsed <= 0 || elapsed > most.Nanoseconds() || states+stolen < elapsed*9/10-4*tickNS || states > elapsed*11/10+4*tickNS {
			t.Errorf("%v: the states add up to %d ns, and %d ns were stolen, in %d ns, in a recording of at most %s", row[0], states, stolen,
				elapsed, most)
		}
	}
	if own := r.Number(t, "SELECT CAST(sum(value) AS BIGINT) FROM counter WHERE source = 'self' AND name = 'sampler_cpu'"); own <= 0 {
		t.Errorf("the sampler's own time is %d ns", own)
	}
	if n := r.Number(t, "SELECT count(*) FROM warning WHERE kind = 'counter' AND detail NOT LIKE 'totals that fell%%'"); n > 0 {
		t.Errorf("%d sources failed", n)
	}
}

func TestCountersOffRecordsNone(t *testing.T) {
	harness.Debian.Beside(t)
	r := harness.Record(t, []string{"--counters", "off"}, harness.Debian.Job("mlp.py", "--steps", "3")...)
	if n := r.Number(t, "SELECT count(*) FROM counter"); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func TestCountersOfTheJobsOwnNetwork(t *testing.T) {
	harness.Debian.Beside(t)
	if out, err := exec.Command("unshare", "--net", "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Skipf("no network namespaces here: %v %s", err, bytes.TrimSpace(out))
	}
	argv := harness.Debian.Job("busy.py", "--seconds", "1", "--megabytes", "8", "--directory", harness.Scratch)
	r := harness.Record(t, []string{"--counters", "100ms"}, append([]string{"unshare", "--net", "sh", "-c",
		`ip link set lo up && exec "$0" "$@"`}, argv...)...)
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	scopes := r.Counts(t, "SELECT scope, CAST(sum(value) AS BIGINT) FROM counter WHERE name = 'network_sent' AND device = 'lo' GROUP BY ALL")
	delete(scopes, own)
	sent := int64(0)
	for _, n := range scopes {
		sent = max(sent, n)
	}
	if sent < 8<<20 {
		t.Errorf("%d bytes sent in the job's own network namespace; scopes: %v", sent, scopes)
	}
}
