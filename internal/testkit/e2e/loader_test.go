package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// TestALoadersReadsAreItsOwnCount: calls and bytes by file system, exactly, and with --paths
// by file; and what it maps as major faults, as many as the kernel counts.
func TestALoadersReadsAreItsOwnCount(t *testing.T) {
	harness.NeedKernel(t)
	memory, disk := t.TempDir(), t.TempDir()
	if err := unix.Mount("tmpfs", memory, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("kernel: a file system for the test: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(memory, unix.MNT_DETACH) })
	const files, rounds = 20, 2 // more than a thread has places for
	r := harness.RecordReady(t, append([]string{"--paths"}, harness.Unbudgeted...), "/usr/bin/python3", harness.Script("loader.py"),
		"--files", fmt.Sprint(files), "--rounds", fmt.Sprint(rounds), memory, disk)
	r.Lossless(t)
	for _, directory := range []string{memory, disk} {
		told := r.Truth.Loaded[directory]
		// Where the file system is mounted at the root, the deep file's path begins there.
		below := fmt.Sprintf("operation = 'read' AND kind = 'file' AND (starts_with(path, '%s/') OR starts_with(path, '…/') AND mount <> "+
			"'%s') AND %s",
			directory, memory, r.Region(t))
		if directory == memory {
			below += fmt.Sprintf(" AND mount = '%s'", memory)
		}
		sums := r.Rows(t, "SELECT sum(calls)::BIGINT, sum(bytes)::BIGINT, sum(duration_ns)::BIGINT, count(DISTINCT path), count(DISTINCT "+
			"(file_system, mount)) FROM io WHERE %s", below)[0]
		if got, want := fmt.Sprint(sums[:2]), fmt.Sprintf("[%d %d]", told.Calls.Calls, told.Bytes); got != want ||
			told.Bytes != files*rounds<<20 {
			t.Errorf("%s: calls and bytes %s, the job counted %s", directory, got, want)
		}
		if paths := harness.Integer(t, sums[3]); paths != files || harness.Integer(t, sums[4]) != 1 {
			t.Errorf("%s: %d paths, want %d, on %v mounts", directory, paths, files, sums[4])
		}
		if ns := harness.Integer(t, sums[2]); ns <= 0 || ns > told.NS {
			t.Errorf("%s: %d ns, the job was in them %d ns", directory, ns, told.NS)
		} else {
			t.Logf("%s: %.1f %% of the time that the job measured", directory, 100*float64(ns)/float64(told.NS))
		}
		// Every file alike: none has another's calls.
		if odd := r.Rows(t, "SELECT path, sum(calls)::BIGINT, sum(bytes)::BIGINT FROM io WHERE %s GROUP BY path HAVING sum(calls) <> %d OR "+
			"sum(bytes) <> %d", below, 2*rounds, rounds<<20); len(odd) > 0 {
			t.Errorf("files that were read otherwise: %v", odd)
		}
		for _, path := range []string{filepath.Join(directory, "0"), directory + "/odd\n\x1b[2J \uFFFD"} {
			if n := r.Number(t, "SELECT count(*) FROM io WHERE path = '%s'", path); n == 0 {
				t.Errorf("no rows of %q", path)
			}
		}
	}
	if n := r.Number(t, "SELECT sum(calls)::BIGINT FROM io WHERE mount = '%s' AND operation = 'read' AND file_system = 'tmpfs'",
		memory); n != r.Truth.Loaded[memory].Calls.Calls {
		t.Errorf("%d reads of the file system in memory, want %d", n, r.Truth.Loaded[memory].Calls.Calls)
	}
	// Names that take more room than there is are cut at the root.
	if n := r.Number(t, "SELECT count(DISTINCT path) FROM io WHERE starts_with(path, '%s/…/dddd') AND ends_with(path, '/deep')",
		memory); n != 1 {
		t.Errorf("%d paths of the deep file: %v", n, r.Rows(t, "SELECT DISTINCT path FROM io WHERE ends_with(path, '/deep')"))
	}
	if bad := r.Rows(t, "SELECT path FROM span WHERE layer = 'io' AND category = 'file' AND path IS NULL"); len(bad) > 0 {
		t.Errorf("%d long calls have no path", len(bad))
	}
	checkFaults(t, r, filepath.Join(disk, "0"))
	checkNoPaths(t, memory, disk)
}

// checkFaults: the job's thread touched a file that was not in memory.
func checkFaults(t *testing.T, r *harness.Recording, path string) {
	t.Helper()
	if r.Truth.Faults == 0 {
		t.Log("the temporary directory's file system keeps all in memory: no faults")
		return
	}
	rows := r.Rows(t, "SELECT sum(calls)::BIGINT, count(bytes), count(duration_ns), sum(waited_ns)::BIGINT FROM io WHERE operation = "+
		"'fault' AND tid = %d AND %s AND (path = '%s' OR kind IS NULL)",
		r.Truth.PID, r.Region(t), path)[0]
	if fmt.Sprint(rows[:3]) != fmt.Sprintf("[%d 0 0]", r.Truth.Faults) {
		t.Errorf("major faults %v, the kernel counted %d", rows, r.Truth.Faults)
	}
	t.Logf("%d faults, off the CPU for %v ns", r.Truth.Faults, rows[3])
}

// checkNoPaths: nobody has asked for them.
func checkNoPaths(t *testing.T, memory, disk string) {
	t.Helper()
	for _, directory := range []string{memory, disk} {
		inside, err := filepath.Glob(directory + "/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range inside {
			os.RemoveAll(path)
		}
	}
	r := harness.RecordReady(t, harness.Unbudgeted, "/usr/bin/python3", harness.Script("loader.py"), "--files", "3", "--rounds", "1",
		memory, disk)
	if n := r.Number(t, "SELECT (SELECT count(path) FROM io) + (SELECT count(path) FROM span)"); n != 0 {
		t.Errorf("%d paths that nobody asked for", n)
	}
	told := r.Truth.Loaded[memory]
	if n := r.Number(t, "SELECT sum(bytes)::BIGINT FROM io WHERE operation = 'read' AND mount = '%s'", memory); n != told.Bytes {
		t.Errorf("%d bytes without paths, the job read %d", n, told.Bytes)
	}
	raw, err := os.ReadDir(filepath.Join(r.Dataset, "io"))
	if err != nil || len(raw) == 0 {
		t.Fatalf("table io: %v", err)
	}
	for _, f := range raw {
		content, err := os.ReadFile(filepath.Join(r.Dataset, "io", f.Name()))
		if err != nil || strings.Contains(string(content), disk+"/0") {
			t.Errorf("%s, %v: has a path", f.Name(), err)
		}
	}
}
