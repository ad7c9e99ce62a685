package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
	"github.com/ebpfprof/ebpfprof/internal/testkit/pythons"
)

// The stacks of calls into a runtime, against what the job says of its own
// frames: testdata/jobs/devicecalls.py puts a number into each launch that
// stands for the Python frames around it.

// pythonFrames are the Python frames of a row's stack, leaf first.
const pythonFrames = `list_transform(list_filter(frames, lambda f: f.kind = 'python'), lambda f: f.function || ':' || f.line)`

// deviceCalls records the job under one Python, in which nothing was memoised
// before.
func deviceCalls(t *testing.T, python string, flags, arguments []string) *harness.Recording {
	t.Helper()
	job := []string{"env", "STUB_INSTANT=1", python, harness.Script("devicecalls.py"), "--library", stub(t, "libcuda.so.1")}
	return harness.RecordReady(t, append([]string{"--frequency", "1", "--off-cpu-threshold", "10s", "--counters", "off", "--budget", "off"},
		flags...), append(job, arguments...)...)
}

// checkNumbers compares the stack of each launch with the one that its number
// stands for. Of a job that drops code objects which it has just run, the leaf may be gone.
func checkNumbers(t *testing.T, r *harness.Recording, atLeast int64, leafMayBeGone bool) {
	t.Helper()
	r.Lossless(t)
	checked := int64(0)
	for _, row := range r.Rows(t, `SELECT shared_bytes, %s AS said, stack.status, count(*) FROM span LEFT JOIN stack USING (stack_id)
			WHERE category = 'launch' GROUP BY ALL ORDER BY ALL`, pythonFrames) {
		number, n := fmt.Sprint(row[0]), harness.Integer(t, row[3])
		checked += n
		want := r.Truth.Numbers[number]
		got := texts(row[1])
		if leafMayBeGone && len(got) > 0 && got[0] == "<nil>" {
			got[0] = want[0]
		}
		if want == nil || !slices.Equal(got, want) || fmt.Sprint(row[2]) != "complete" {
			t.Errorf("launch %s, %d times: %s stack\n  %s, made from\n  %s", number, n, row[2], strings.Join(got, " "), strings.Join(want, " "))
		}
	}
	if checked < atLeast {
		t.Errorf("%d launches, want %d at least", checked, atLeast)
	}
}

// memoised is what the dataset says of stacks that were looked up.
type memoised struct{ found, verified, mismatched int64 }

var memoisedDetail = regexp.MustCompile(`; (\d+) were walked to compare, and (\d+) of them`)

func memoisedOf(t *testing.T, r *harness.Recording) (m memoised) {
	t.Helper()
	for _, row := range r.Rows(t, "SELECT count, detail FROM warning WHERE kind = 'memoised' AND source = 'stack'") {
		said := memoisedDetail.FindStringSubmatch(fmt.Sprint(row[1]))
		if said == nil {
			t.Fatalf("unreadable: %s", row[1])
		}
		m.found = harness.Integer(t, row[0])
		m.verified, _ = strconv.ParseInt(said[1], 10, 64)
		m.mismatched, _ = strconv.ParseInt(said[2], 10, 64)
	}
	return m
}

func TestMemoisedStacksAreThoseOfTheCalls(t *testing.T) {
	harness.Beside(t, "libcuda")
	for _, p := range pythons.Installed() {
		t.Run(p.Name(), func(t *testing.T) {
			r := deviceCalls(t, p.Path, []string{"--verify-stacks", "50"}, []string{"--repeats", "150"})
			checkNumbers(t, r, 10_000, false)
			launches := r.Number(t, "SELECT count(*) FROM span WHERE category = 'launch'")
			m := memoisedOf(t, r)
			t.Logf("%d launches, %+v", launches, m)
			// Until 3.10 each frame is an object of its own, now here, now there.
			share := int64(80)
			if strings.HasPrefix(p.Version, "3.8") || strings.HasPrefix(p.Version, "3.9") || strings.HasPrefix(p.Version, "3.10") {
				share = 25
			}
			if m.found < launches*share/100 || m.mismatched != 0 {
				t.Errorf("of the stacks of %d launches: %+v", launches, m)
			}
			if share == 80 && (m.verified < m.found/100 || m.verified > m.found/20) {
				t.Errorf("of %d stacks that were looked up %d were walked to compare", m.found, m.verified)
			}
		})
	}
}

func TestEveryMemoisedStackEqualsTheWalkedOne(t *testing.T) {
	harness.Beside(t, "libcuda")
	r := deviceCalls(t, harness.Debian.Python, []string{"--verify-stacks", "1"}, []string{"--repeats", "100"})
	checkNumbers(t, r, 5000, false)
	if m := memoisedOf(t, r); m.found < 4000 || m.verified != m.found || m.mismatched != 0 {
		t.Errorf("%+v", m)
	}
}

// A code object in the place of another is the one thing that the words which a
// walk goes by do not tell.
func TestAMismatchIsCountedAndCorrected(t *testing.T) {
	harness.Beside(t, "libcuda")
	r := deviceCalls(t, harness.Debian.Python, []string{"--verify-stacks", "1"}, []string{"--repeats", "3000", "--replace"})
	checkNumbers(t, r, 3000, true) // before its name could be asked for
	if m := memoisedOf(t, r); m.mismatched == 0 || m.mismatched > m.verified {
		t.Errorf("%+v: the job replaces its code objects", m)
	}
}

// Allocations and those that found no room, with the stack of the call: the
// number is in the size.
func TestDriverAllocationsHaveTheirStack(t *testing.T) {
	harness.Beside(t, "libcuda", "hip")
	const tooMuch = 1 << 40
	for runtime, library := range map[string]string{"cuda": "libcuda.so.1", "hip": "libamdhip64.so.6"} {
		for _, level := range []string{"anchor", "window"} {
			t.Run(runtime+"/"+level, func(t *testing.T) {
				r := harness.RecordReady(t, []string{"--level", level, "--budget", "off", "--counters", "off"},
					harness.Debian.Python, harness.Script("devicecalls.py"), "--runtime", runtime, "--library", stub(t, library), "--repeats", "1")
				r.Lossless(t)
				counts := map[string]int64{}
				for _, row := range r.Rows(t, `SELECT action, bytes, %s, stack.status, count(*) FROM memory LEFT JOIN stack USING (stack_id)
						WHERE level = 'driver' AND action <> 'free' GROUP BY ALL`, pythonFrames) {
					action, bytes := fmt.Sprint(row[0]), harness.Integer(t, row[1])
					counts[action] += harness.Integer(t, row[4])
					want := r.Truth.Numbers[fmt.Sprint(bytes%tooMuch/4096)]
					if got := texts(row[2]); want == nil || !slices.Equal(got, want) || fmt.Sprint(row[3]) != "complete" {
						t.Errorf("%s of %d bytes: %v stack %s, made from %s", action, bytes, row[3], got, want)
					}
					if failed := bytes >= tooMuch; failed != (action == "out_of_memory") {
						t.Errorf("%s of %d bytes", action, bytes)
					}
				}
				if counts["alloc"] != 3 || counts["out_of_memory"] != 3 || len(counts) != 2 {
					t.Errorf("memory rows: %v, want 3 of each", counts)
				}
			})
		}
	}
}

// texts are the elements of a list.
func texts(value any) []string {
	list, _ := value.([]any)
	all := []string{}
	for _, v := range list {
		all = append(all, fmt.Sprint(v))
	}
	return all
}

// lineOf is where a text is in a job's script.
func lineOf(t *testing.T, script, text string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "jobs", script))
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(content), text)
	if !found {
		t.Fatalf("%s has no %q", script, text)
	}
	return 1 + strings.Count(before, "\n")
}

// A collective's stack: the library's own function, then torch's Python, then
// the job's line, then the interpreter's C down to the process's start.
func TestCollectivesHaveTheirStack(t *testing.T) {
	v := harness.PyPI
	v.Beside(t)
	r := harness.RecordReady(t, []string{"--budget", "off", "--counters", "off"}, v.Job("gloo.py", "--steps", "3")...)
	checked := int64(0)
	for _, call := range []struct{ name, line string }{
		{"gloo::allreduce", "dist.all_reduce("}, {"gloo::broadcast", "dist.broadcast("}, {"gloo::reduce", "dist.reduce("},
	} {
		job := fmt.Sprintf("rank:%d", lineOf(t, "gloo.py", call.line))
		for _, row := range r.Rows(t, `SELECT [f.kind FOR f IN frames], %s AS python, stack.status, frames[1].kind, frames[1].function, count(*)
					FROM span LEFT JOIN stack USING (stack_id) WHERE layer = 'collective' AND category = 'issue' AND name = '%s'
					GROUP BY ALL`, pythonFrames, call.name) {
			python, kinds := texts(row[1]), strings.Join(texts(row[0]), " ")
			if !slices.Contains(python, job) { // DDP's own
				continue
			}
			checked += harness.Integer(t, row[5])
			method := strings.TrimPrefix(call.name, "gloo::")
			if fmt.Sprint(row[2]) != "complete" || row[3] != "native" || !strings.Contains(fmt.Sprint(row[4]), "ProcessGroupGloo::"+method) {
				t.Errorf("%s: %v stack from %v %v", call.name, row[2], row[3], row[4])
			}
			// Torch's function calls into C; below the module is the interpreter's.
			if !strings.HasPrefix(kinds, "native native") || !strings.Contains(kinds, "python python") || !strings.HasSuffix(kinds, "native") {
				t.Errorf("%s: frames of kinds %s", call.name, kinds)
			}
			if at := slices.Index(python, job); !strings.HasPrefix(python[at-1], method[:3]) && !strings.Contains(python[at-1], "wrapper") {
				t.Errorf("%s: the job's line is called from %s", call.name, python)
			}
			if last := python[len(python)-1]; !strings.HasPrefix(last, "<module>:") {
				t.Errorf("%s: the outermost Python frame is %s", call.name, last)
			}
		}
	}
	if want := int64(2 * (5 + 4 + 2)); checked != want {
		t.Errorf("%d collectives with the job's line in their stack, want %d", checked, want)
	}
}
