package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// shares are the samples in which a function was the innermost Python function
// (self), and in which it was on the stack at all (total).
type shares struct {
	all         int64
	self, total map[string]int64 // by "function (file)"
}

func newShares() *shares { return &shares{self: map[string]int64{}, total: map[string]int64{}} }

// add takes a stack's Python functions, leaf first. Only what the loop did is
// asked for, which both profilers see from its first sample to its last.
func (s *shares) add(functions []string, samples int64, loop string) {
	if !slices.Contains(functions, loop) {
		return
	}
	s.all += samples
	s.self[functions[0]] += samples
	slices.Sort(functions)
	for _, f := range slices.Compact(functions) {
		s.total[f] += samples
	}
}

// disagreement is the difference of two shares in standard deviations, of both
// as binomial counts around their common mean.
func disagreement(a, allA, b, allB int64) float64 {
	p, q, n, m := float64(a)/float64(allA), float64(b)/float64(allB), float64(allA), float64(allB)
	mean := float64(a+b) / (n + m)
	return (p - q) / math.Sqrt(mean*(1-mean)*(1/n+1/m))
}

const (
	// pySpySigmas bounds a share's difference. Two profilers of the same steps
	// differ by less than two independent ones.
	pySpySigmas = 4
	// countable: below, a count is not near enough to a normal distribution.
	countable = 20
)

// compare holds every function that either saw often enough against the other.
func compare(t *testing.T, what string, ours, theirs *shares, a, b map[string]int64) {
	t.Helper()
	functions := maps.Clone(a)
	maps.Copy(functions, b)
	for _, f := range slices.Sorted(maps.Keys(functions)) {
		if a[f]+b[f] < countable || a[f]+b[f] > ours.all+theirs.all-countable {
			continue
		}
		sigmas := disagreement(a[f], ours.all, b[f], theirs.all)
		line := fmt.Sprintf("%-5s %6.2f %%, py-spy %6.2f %%: %+.1f sigma: %s", what,
			100*float64(a[f])/float64(ours.all), 100*float64(b[f])/float64(theirs.all), sigmas, f)
		if math.Abs(sigmas) > pySpySigmas {
			t.Error(line)
		} else {
			t.Log(line)
		}
	}
}

func pySpy(t *testing.T) string {
	t.Helper()
	path := filepath.Join(harness.Cache(), "py-spy-venv", "bin", "py-spy")
	if _, err := os.Stat(path); err != nil {
		t.Skip("py-spy is not installed: run `make py-spy`")
	}
	return path
}

// pySpyFrame is a Python function in py-spy's folded lines, which have native
// ones as "function (module)".
var pySpyFrame = regexp.MustCompile(`^.* \(.*(\.py|<.*>)\)$`)

// readPySpy reads py-spy's `--format raw`: root first, joined by ';', and a count.
func readPySpy(t *testing.T, file, loop string) *shares {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := newShares()
	for line := range strings.Lines(string(content)) {
		at := strings.LastIndexByte(line, ' ')
		samples, err := strconv.ParseInt(strings.TrimSpace(line[at+1:]), 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		var functions []string
		for frame := range strings.SplitSeq(line[:at], ";") {
			if pySpyFrame.MatchString(frame) {
				functions = append(functions, frame)
			}
		}
		slices.Reverse(functions)
		s.add(functions, samples, loop)
	}
	return s
}

// ourShares are those of the samples on the CPU.
func ourShares(t *testing.T, r *harness.Recording, loop string) *shares {
	t.Helper()
	s := newShares()
	for _, row := range r.Rows(t,
		`SELECT to_json(any_value([f.function || ' (' || f.file || ')' FOR f IN frames IF f.kind = 'python']))::VARCHAR, count(*)
		FROM sample JOIN stack USING (stack_id) WHERE state = 'on_cpu' GROUP BY stack_id`) {
		var functions []string
		if err := json.Unmarshal([]byte(row[0].(string)), &functions); err != nil {
			t.Fatal(err)
		}
		s.add(functions, harness.Integer(t, row[1]), loop)
	}
	return s
}

const (
	// pySpyRate is low, because with --native py-spy stops the job for 3 to 4 ms a
	// sample. At 100 Hz it stopped functions.py for a third of the time, and its
	// shares were no longer those of the job's processor time: 14 % in tokenise,
	// which has short stacks, instead of 22 %.
	pySpyRate = 25
	ourRate   = 199
)

// besidePySpy has a job sampled by both at once. The job has a CPU of its own:
// py-spy counts threads that could run as running, and a thread gives way to
// others where it enters the kernel. Where others took that CPU for long the two
// are not about the same, and it is tried again; contended after the last time.
func besidePySpy(t *testing.T, loop string, argv ...string) (r *harness.Recording, ours, theirs *shares, contended bool) {
	t.Helper()
	program := pySpy(t)
	for try := range 2 {
		raw := filepath.Join(t.TempDir(), "raw")
		var spy *harness.Command
		r = harness.RecordReadyBeside(t, []string{"--frequency", fmt.Sprint(ourRate)}, func(pid int) {
			spy = harness.Start(t, "taskset", "-c", "1", program, "record", "--native", "--nolineno", "--full-filenames", "--format", "raw",
				"--rate", fmt.Sprint(pySpyRate), "--duration", "120", "--output", raw, "--pid", fmt.Sprint(pid))
			spy.Until(t, "word that it samples", func(out []string, errs string) bool {
				return strings.Contains(strings.Join(out, "\n")+errs, "Sampling process")
			})
		}, append([]string{"taskset", "-c", "0"}, argv...)...)
		if code, err := spy.Wait(); code != 0 || err != nil {
			t.Fatalf("py-spy: exit code %d, %v\n%s", code, err, spy.Transcript())
		}
		r.Lossless(t)
		ours, theirs = ourShares(t, r, loop), readPySpy(t, raw, loop)
		waited := r.Number(t, "SELECT coalesce(sum(weight_ns), 0)::BIGINT // 1000000 FROM sample WHERE cause = 'preempted' AND tid = pid AND "+
			r.Region(t))
		ran := r.Number(t, "SELECT sum(weight_ns)::BIGINT // 1000000 FROM sample WHERE state = 'on_cpu' AND tid = pid AND "+r.Region(t))
		t.Logf("%d samples in %s, py-spy %d; it ran for %d ms and waited %d ms for its CPU", ours.all, loop, theirs.all, ran, waited)
		if contended = waited > ran/20; contended {
			continue
		}
		if ours.all < 1000 || pySpyCounts() && theirs.all < 300 {
			t.Fatalf("%d samples, py-spy %d: too few to compare\n%s", ours.all, theirs.all, spy.Transcript())
		}
		t.Logf("compared at the %d. try", try+1)
		if pySpyCounts() {
			compare(t, "self", ours, theirs, ours.self, theirs.self)
			compare(t, "total", ours, theirs, ours.total, theirs.total)
		}
		break
	}
	return r, ours, theirs, contended
}

// pySpyCounts reports whether py-spy is held against the samples. At each of its
// own it stops the job, the longer the deeper the stack, and so moves the shares
// that it sees: on a machine that others use as well by more than four sigma now
// and then, where the job's own clock and the samples still agree. It is for a
// machine that does nothing else.
func pySpyCounts() bool { return os.Getenv("EBPFPROF_PYSPY") != "" }

func jobScript(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../../testdata/jobs", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPySpyAgreesOnTheShareOfEachFunctionOfATrainingLoop(t *testing.T) {
	if !pySpyCounts() {
		t.Skip("py-spy moves its own shares on a shared machine: run it alone, with EBPFPROF_PYSPY=1")
	}
	harness.EachTorch(t, func(t *testing.T, v harness.Torch) {
		script := jobScript(t, "functions.py")
		if _, _, _, contended := besidePySpy(t, "train ("+script+")", v.Python, script, "--seconds", "20"); contended {
			t.Skip("others used the job's CPU, twice: run it alone")
		}
	})
}

// TestPySpyAgreesOnKnownShares: of three functions the job says itself what they take.
func TestPySpyAgreesOnKnownShares(t *testing.T) {
	harness.NeedKernel(t)
	script := jobScript(t, "shares.py")
	r, ours, theirs, contended := besidePySpy(t, "main ("+script+")", "/usr/bin/python3", script, "--cpu-seconds", "15")
	spent := int64(0)
	for _, ns := range r.Truth.CPUNS {
		spent += ns
	}
	for _, name := range slices.Sorted(maps.Keys(r.Truth.CPUNS)) {
		p := float64(r.Truth.CPUNS[name]) / float64(spent)
		sigmas := func(s *shares) float64 {
			return (float64(s.self[name+" ("+script+")"])/float64(s.all) - p) / math.Sqrt(p*(1-p)/float64(s.all))
		}
		t.Logf("%s: %.2f %% of the job's own count, samples %+.1f sigma from it, py-spy's %+.1f", name, 100*p, sigmas(ours), sigmas(theirs))
		if math.Abs(sigmas(ours)) > pySpySigmas {
			t.Errorf("%s: %.2f %% of the job's own count, samples are %+.1f sigma from it", name, 100*p, sigmas(ours))
		}
	}
	if contended {
		t.Skip("others used the job's CPU, twice: py-spy was not compared; run it alone")
	}
}
