package e2e

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/pythons"
)

// The stacks of calls into a runtime, against what the job says of its own
// frames: testdata/jobs/devicecalls.py puts a number into each launch that
// stands for the Python frames around it.

// pythonFrames are the Python frames of a row's stack, leaf first.
const pythonFrames = `list_transform(list_filter(frames, lambda f: f.kind = 'python'), lambda f: f.function || ':' || f.line)`

// deviceCalls records the job under one Python, in which nothing was remembered
// before.
func deviceCalls(t *testing.T, python string, flags, arguments []string) *recording {
	t.Helper()
	os.Setenv("STUB_INSTANT", "1")
	defer os.Unsetenv("STUB_INSTANT")
	job := []string{python, "../../testdata/jobs/devicecalls.py", "--library", stub(t, "libcuda.so.1")}
	return sampled(t, append([]string{"--frequency", "1", "--off-cpu-threshold", "10s", "--counters", "off", "--budget", "off"}, flags...), append(job, arguments...)...)
}

// checkNumbers compares the stack of each launch with the one that its number
// stands for.
func (r *recording) checkNumbers(t *testing.T, atLeast int64) {
	t.Helper()
	r.lossless(t)
	checked := int64(0)
	for _, row := range r.rows(t, `SELECT shared_bytes, %s AS said, stack.status, count(*) FROM span LEFT JOIN stack USING (stack_id)
			WHERE category = 'launch' GROUP BY ALL ORDER BY ALL`, pythonFrames) {
		number, n := fmt.Sprint(row[0]), integer(t, row[3])
		checked += n
		want := r.truth.Numbers[number]
		got := []string{}
		if list, ok := row[1].([]any); ok {
			for _, frame := range list {
				got = append(got, fmt.Sprint(frame))
			}
		}
		if r.leafMayBeGone && len(got) > 0 && got[0] == "<nil>" {
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

func (r *recording) memoised(t *testing.T) (m memoised) {
	t.Helper()
	for _, row := range r.rows(t, "SELECT count, detail FROM warning WHERE kind = 'memoised'") {
		said := memoisedDetail.FindStringSubmatch(fmt.Sprint(row[1]))
		if said == nil {
			t.Fatalf("unreadable: %s", row[1])
		}
		m.found = integer(t, row[0])
		m.verified, _ = strconv.ParseInt(said[1], 10, 64)
		m.mismatched, _ = strconv.ParseInt(said[2], 10, 64)
	}
	return m
}

func TestMemoisedStacksAreThoseOfTheCalls(t *testing.T) {
	for _, p := range pythons.Installed() {
		t.Run(p.Name(), func(t *testing.T) {
			r := deviceCalls(t, p.Path, []string{"--verify-stacks", "50"}, []string{"--repeats", "150"})
			r.checkNumbers(t, 10_000)
			launches := r.number(t, "SELECT count(*) FROM span WHERE category = 'launch'")
			m := r.memoised(t)
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
	r := deviceCalls(t, debianTorch.python, []string{"--verify-stacks", "1"}, []string{"--repeats", "100"})
	r.checkNumbers(t, 5000)
	if m := r.memoised(t); m.found < 4000 || m.verified != m.found || m.mismatched != 0 {
		t.Errorf("%+v", m)
	}
}

// A code object in the place of another is the one thing that the words which a
// walk goes by do not tell.
func TestAMismatchIsCountedAndCorrected(t *testing.T) {
	r := deviceCalls(t, debianTorch.python, []string{"--verify-stacks", "1"}, []string{"--repeats", "3000", "--replace"})
	r.leafMayBeGone = true // before anybody could ask for its name
	r.checkNumbers(t, 3000)
	if m := r.memoised(t); m.mismatched == 0 || m.mismatched > m.verified {
		t.Errorf("%+v: the job replaces its code objects", m)
	}
}
