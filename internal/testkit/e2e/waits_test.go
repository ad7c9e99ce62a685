package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// TestWaitsForAMissingRankAreThereWhileTheyLast: four ranks, one of which does not come to
// a collective. While that lasts the others' waits are in the dataset, with the number,
// size and type of the collective, and `fleet hang` names who is missing; then it comes,
// and nothing is open.
func TestWaitsForAMissingRankAreThereWhileTheyLast(t *testing.T) {
	const before, victim = 20, 2
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		until := filepath.Join(t.TempDir(), "come")
		job := harness.StartJob(t, v.Job("missing.py", "--until", until, "--before", fmt.Sprint(before), "--victim", fmt.Sprint(victim))...)
		tracing := harness.Attach(t, harness.Unbudgeted, job.ReadyPID(t))
		job.GoOn(t)
		job.Line(t, "before")
		live := &harness.Recording{Dataset: tracing.Dataset}
		open := "SELECT rank, name, sequence_number, bytes, dtype, element_count, python_stack_id IS NOT NULL, communicator IS NOT NULL, " +
			"completed_number FROM open_call WHERE category = '%s' ORDER BY rank"
		// What is known of a wait comes with the rows of its work, a file or two later.
		var waits []string
		for _, rank := range []int{0, 1, 3} {
			waits = append(waits, fmt.Sprintf("[%d Work::wait %d 4000 double 500 true true %d]", rank, before, before-1))
		}
		asked := []struct{ query, want string }{
			{fmt.Sprintf(open, "wait"), fmt.Sprint(waits)},
			{"SELECT rank, name, sequence_number FROM open_call WHERE category = 'work' ORDER BY rank",
				fmt.Sprintf("[[0 gloo::allreduce %[1]d] [1 gloo::allreduce %[1]d] [3 gloo::allreduce %[1]d]]", before)},
			{"SELECT rank, issued_number FROM communicator ORDER BY rank",
				fmt.Sprintf("[[0 %[1]d] [1 %[1]d] [2 %[2]d] [3 %[1]d]]", before, before-1)},
		}
		for _, a := range asked {
			var got string
			for deadline := time.Now().Add(harness.Patience); ; time.Sleep(100 * time.Millisecond) {
				if got = fmt.Sprint(live.Rows(t, "%s", a.query)); got == a.want {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("in %s %s\ngives %s\nwant  %s\n%s", harness.Patience, a.query, got, a.want, job.Transcript())
				}
			}
		}
		// The line at which each of them waits is on disk too.
		line := lineOf(t, "missing.py", "# the collective that waits")
		where := func() string {
			return fmt.Sprint(live.Rows(t, "SELECT DISTINCT list_filter(s.frames, lambda f: f.file LIKE '%%missing.py')[1].line FROM open_call o "+
				"JOIN stack s ON s.stack_id = o.python_stack_id WHERE o.category = 'wait'"))
		}
		lines, want := where(), fmt.Sprintf("[[%d]]", line)
		// A stack is written with the next file.
		for deadline := time.Now().Add(harness.Patience); lines != want && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			lines = where()
		}
		if lines != want {
			t.Errorf("they wait at lines %s, want %s", lines, want)
		}
		said, err := exec.Command(harness.Binary, "fleet", "hang", tracing.Dataset).CombinedOutput()
		if want := fmt.Sprintf("3 wait in collective %d (gloo::allreduce)", before); err != nil || !strings.Contains(string(said), want) ||
			!strings.Contains(string(said), fmt.Sprintf("rank %d has not come", victim)) || !strings.Contains(string(said),
			fmt.Sprintf("missing.py:%d", line)) {
			t.Errorf("fleet hang, %v:\n%s", err, said)
		}
		stacksOfAHang(t, tracing.Dataset, victim)
		if v == harness.PyPI {
			unseenHang(t, tracing.Dataset, victim)
		}
		if v == harness.PyPI { // PyTorch's own analyser says the same of the dumps; 1.13 has none
			dumps := filepath.Join(t.TempDir(), "dumps")
			if out, err := exec.Command(harness.Binary, "fleet", "hang", tracing.Dataset, "--dump", dumps).CombinedOutput(); err != nil {
				t.Errorf("fleet hang --dump: %v\n%s", err, out)
			}
			told, err := exec.Command(v.Python, "-m", "torch.distributed.flight_recorder.fr_trace", dumps).CombinedOutput()
			if err != nil || !strings.Contains(string(told), fmt.Sprintf("missing ranks: {%d}", victim)) ||
				!strings.Contains(string(told), fmt.Sprintf("sequence number: %d", before)) || !strings.Contains(string(told),
				fmt.Sprintf("missing.py:%d", line)) {
				t.Errorf("fr_trace, %v:\n%s", err, told)
			}
		}
		if err := os.WriteFile(until, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if code, err := job.Wait(); code != 0 || err != nil {
			t.Fatalf("the job: %d, %v\n%s", code, err, job.Transcript())
		}
		r := tracing.Finish(t)
		r.Lossless(t)
		if n := r.Number(t, "SELECT count(*) FROM open_call"); n != 0 {
			t.Errorf("%d calls are open when all have ended", n)
		}
		// Each collective of each rank has its number, on all its calls, and its share.
		var issued []string
		for i := range before + 1 {
			issued = append(issued, fmt.Sprint(i))
		}
		for name, numbers := range map[string][]string{
			"gloo::allreduce": issued, "gloo::broadcast": {fmt.Sprint(before + 1)}, "gloo::allgather": {fmt.Sprint(before + 2)},
			"gloo::barrier": {fmt.Sprint(before + 3)},
		} {
			for rank := range 4 {
				got := fmt.Sprint(r.Rows(t, "SELECT string_agg(sequence_number, ' ' ORDER BY sequence_number) FROM span WHERE name = '%s' "+
					"AND rank = %d", name, rank)[0][0])
				if want := strings.Join(numbers, " "); got != want {
					t.Errorf("%s of rank %d: numbers %s, want %s", name, rank, got, want)
				}
			}
		}
		// Gloo's own threads wait too: in a barrier, for what was asked for before it.
		for category, which := range map[string]string{"work": "true", "wait": "tid = pid"} {
			got := r.Rows(t, "SELECT count(*), count(DISTINCT sequence_number) FROM span WHERE layer = 'collective' AND category = '%s' AND "+
				"sequence_number IS NOT NULL AND %s GROUP BY pid", category, which)
			for _, row := range got {
				if fmt.Sprint(row) != fmt.Sprintf("[%d %d]", before+4, before+4) {
					t.Errorf("%s of a rank: %v calls, numbers; want %d", category, row, before+4)
				}
			}
			if len(got) != 4 {
				t.Errorf("%s of %d ranks", category, len(got))
			}
		}
		shares := fmt.Sprint(r.Rows(t, "SELECT DISTINCT name, dtype, element_count, bytes FROM span WHERE layer = 'collective' AND category = "+
			"'issue' AND dtype IS NOT NULL ORDER BY ALL"))
		if want := "[[gloo::allgather float 7 28] [gloo::allreduce double 500 4000] [gloo::allreduce float 1000 4000] [gloo::broadcast int 600 " +
			"2400] [gloo::recv float 11 44] [gloo::send float 11 44]]"; shares != want {
			t.Errorf("shares %s\nwant   %s", shares, want)
		}
		flows := r.Counts(t, "SELECT f.kind, count(*) FROM flow f JOIN span s ON s.span_id = f.to_span_id WHERE f.kind = 'collective' OR "+
			"f.kind = 'launch_sync' AND s.tid = s.pid GROUP BY ALL")
		if flows["collective"] != 3*(before+4) || flows["launch_sync"] != 4*(before+4) {
			t.Errorf("edges %v, want %d between ranks and %d to waits", flows, 3*(before+4), 4*(before+4))
		}
		// Whoever waited long waited for the one that came last.
		late := r.Rows(t, "SELECT DISTINCT i.rank FROM flow JOIN span i ON i.span_id = from_span_id JOIN span w ON w.span_id = to_span_id "+
			"WHERE kind = 'collective' AND i.sequence_number = %d", before)
		if !slices.EqualFunc(late, []int{victim}, func(row []any, rank int) bool { return fmt.Sprint(row[0]) == fmt.Sprint(rank) }) {
			t.Errorf("the last to come was %v, want %d", late, victim)
		}
	})
}

// hangUntil asks fleet hang until its answer has all of some words.
func hangUntil(t *testing.T, dataset string, words ...string) {
	t.Helper()
	for deadline := time.Now().Add(harness.Patience); ; time.Sleep(200 * time.Millisecond) {
		said, err := exec.Command(harness.Binary, "fleet", "hang", dataset).CombinedOutput()
		missing := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.Contains(string(said), w) })
		if len(missing) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("fleet hang, %v: without %q\n%s", err, missing, said)
			return
		}
	}
}

// stacksOfAHang: where those stand who wait, and the one who is missing, is said down to
// the C library, though none of them has run since, or only for moments.
func stacksOfAHang(t *testing.T, dataset string, victim int) {
	t.Helper()
	hangUntil(t, dataset, "stack of what waits: rank 0, rank 1, rank 3, main thread in futex, still for ", "stack of what missing: rank "+
		fmt.Sprint(victim)+", main thread in ",
		"c  c10d::", "py all_reduce", "py dawdle", "[libc.so.6]", fmt.Sprintf("missing.py:%d dawdle", lineOf(t, "missing.py",
			"# the line at which the victim is")))
	live := &harness.Recording{Dataset: dataset}
	if n := live.Number(t, "SELECT count(DISTINCT pid) FROM still_thread JOIN stack USING (stack_id) WHERE tid = pid AND status = "+
		"'complete' AND state = 'sleeping' AND pid IN (SELECT pid FROM communicator)"); n != 4 {
		t.Errorf("the main threads of %d ranks have a whole stack: %v", n, live.Rows(t, "SELECT pid, tid, syscall, status FROM still_thread "+
			"LEFT JOIN stack USING (stack_id)"))
	}
}

// unseenHang: a recording that began when the job hung already has seen no collective, and
// says by the stacks that ranks wait in one.
func unseenHang(t *testing.T, before string, victim int) {
	t.Helper()
	var pids []int
	for _, row := range (&harness.Recording{Dataset: before}).Rows(t, "SELECT DISTINCT pid FROM still_thread ORDER BY pid") {
		var pid int
		if _, err := fmt.Sscan(fmt.Sprint(row[0]), &pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	late := harness.Attach(t, []string{"--level", "anchor"}, pids...)
	hangUntil(t, late.Dataset, "3 wait in a collective whose begin was not recorded (all_reduce): its number is not known",
		fmt.Sprintf("rank %d is in none", victim), "py dawdle")
	if err := late.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, err := late.Wait(); err != nil || code != 0 && code != 5 { // 5: it has recorded no call
		t.Errorf("the second recording ended with %d, %v\n%s", code, err, late.Transcript())
	}
	var report struct{ Verdict string }
	harness.Ask(t, &report, "report", late.Dataset, "--format", "json")
	if !strings.HasPrefix(report.Verdict, "The job hung when the recording ended: 3 wait in a collective whose begin was not recorded "+
		"(all_reduce)") {
		t.Errorf("the report's verdict: %s", report.Verdict)
	}
}
