package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// pythonOf has the Python frames of each stack as the job notes them.
const pythonOf = `python AS (SELECT stack_id AS line_id, list_transform(frames, f -> f.file || ':' || f.line) AS lines FROM stack
	WHERE list_bool_and(list_transform(frames, f -> f.kind = 'python')))`

// Each of a thousand marked calls has the Python stack that it noted, to the line, in
// every frame: in loops, generators, recursion, modules, through C, beside other
// threads; in Python code that runs inside of a backward pass, too.
func TestEveryCallHasTheLineThatMadeIt(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		r := harness.RecordReady(t, harness.Unbudgeted, v.Job("lines.py")...)
		r.Lossless(t)
		total := 0
		for _, name := range []string{"aten::lgamma", "aten::special_i0", "aten::special_i1", "aten::special_i0e", "aten::special_i1e"} {
			want := r.Truth.Marked[name]
			rows := r.Rows(t, `WITH `+pythonOf+` SELECT array_to_string(lines, chr(10)), python_stack_source FROM span
				LEFT JOIN python ON line_id = python_stack_id WHERE name = '%s' ORDER BY ts_ns`, name)
			if len(rows) != len(want) || len(want) == 0 {
				t.Fatalf("%s: %d rows, the job made %d calls", name, len(rows), len(want))
			}
			wrong := 0
			for i, row := range rows {
				noted := strings.Join(r.Truth.Stacks[want[i]], "\n")
				if got := fmt.Sprint(row[0]); got != noted || row[1] != "own" {
					if wrong++; wrong <= 3 {
						t.Errorf("%s, call %d, has (%v)\n%s\nthe job noted\n%s", name, i, row[1], got, noted)
					}
				}
			}
			if wrong > 0 {
				t.Errorf("%s: %d of %d calls have another stack", name, wrong, len(want))
			}
			total += len(rows)
		}
		if total < 1000 {
			t.Errorf("only %d calls were compared", total)
		}
		backwardHasForwardLines(t, r)
	})
}

// backwardHasForwardLines: the nodes of the marked operators, and what those call, have
// the lines of the operators that they differentiate; the rest that of backward().
func backwardHasForwardLines(t *testing.T, r *harness.Recording) {
	t.Helper()
	row := r.Rows(t, `WITH edge AS (SELECT f.python_stack_id AS forward, b.python_stack_id AS line, b.python_stack_source AS source, b.span_id
			FROM flow JOIN span f ON f.span_id = from_span_id JOIN span b ON b.span_id = to_span_id WHERE b.name = 'LgammaBackward0')
		SELECT count(*), count(*) FILTER (line = forward AND source = 'forward'),
			(SELECT count(*) FROM span s JOIN edge e ON s.parent_id = e.span_id WHERE s.layer = 'op'),
			(SELECT count(*) FROM span s JOIN edge e ON s.parent_id = e.span_id WHERE s.layer = 'op' AND s.python_stack_id = e.line
			AND s.python_stack_source = 'inherited')
		FROM edge`)[0]
	nodes, right, inside, insideRight := harness.Integer(t, row[0]), harness.Integer(t, row[1]), harness.Integer(t, row[2]),
		harness.Integer(t, row[3])
	t.Logf("%d nodes, %d with their operator's line; %d operators in them, %d with it", nodes, right, inside, insideRight)
	if want := int64(len(r.Truth.Marked["aten::lgamma"])); nodes != want || right != want || inside < want || insideRight != inside {
		t.Errorf("of %d nodes %d exist and %d have their operator's line; of %d operators in them %d", want, nodes, right, inside, insideRight)
	}
	for name, want := range map[string]struct{ source, marked string }{
		"torch::autograd::PyNode":         {"forward", "CustomBackward"},
		"torch::autograd::AccumulateGrad": {"inherited", "backward"},
		"Engine::execute":                 {"own", "backward"},
	} {
		lines := map[string]int{}
		for _, number := range r.Truth.Marked[want.marked] {
			// Between the line that was marked and the call stands PyTorch's own code.
			lines[r.Truth.Stacks[number][0]]++
		}
		rows := r.Rows(t, `WITH `+pythonOf+` SELECT list_filter(lines, l -> contains(l, 'lines.py'))[1], python_stack_source, count(*)
			FROM span LEFT JOIN python ON line_id = python_stack_id WHERE name = '%s' GROUP BY ALL`, name)
		if len(rows) == 0 {
			t.Errorf("%s: no rows", name)
		}
		for _, row := range rows {
			if line := fmt.Sprint(row[0]); lines[line] == 0 || row[1] != want.source {
				t.Errorf("%d of %s stand at %s (%v); the job was at %v (%s)", harness.Integer(t, row[2]), name, line, row[1], lines, want.source)
			}
		}
	}
}

// On jobs of the two usual shapes nearly every operator and allocation has a line:
// recorded as a whole, and at the defaults.
func TestOperatorsAndAllocationsHaveALine(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		for name, c := range map[string]struct{ flags, job []string }{
			"transformer, default": {nil, []string{"transformer.py", "--steps", "60"}},
			"transformer, whole":   {harness.Unbudgeted, []string{"transformer.py", "--steps", "20"}}, // every call has a row
			// So often that what a few samples do is no matter, however fast the machine is.
			"trainer, whole": {append([]string{"--frequency", "499"}, harness.Unbudgeted...), []string{"trainer.py", "--steps", "60", "--evaluate",
				"20"}},
		} {
			t.Run(name, func(t *testing.T) {
				r := harness.RecordReady(t, c.flags, v.Job(c.job[0], c.job[1:]...)...)
				for what, sql := range map[string]string{
					"operators":   `SELECT count(*), count(python_stack_id), count(DISTINCT python_stack_id) FROM span WHERE layer IN ('op', 'autograd')`,
					"allocations": `SELECT count(*), count(python_stack_id), count(DISTINCT python_stack_id) FROM memory`,
				} {
					row := r.Rows(t, sql)[0]
					all, lines, distinct := harness.Integer(t, row[0]), harness.Integer(t, row[1]), harness.Integer(t, row[2])
					t.Logf("%s: %d rows, %d with a line, %d different ones", what, all, lines, distinct)
					if all == 0 || float64(lines) < 0.99*float64(all) || distinct < 10 {
						t.Errorf("%s: %d of %d rows have a line, %d different ones", what, lines, all, distinct)
					}
				}
				if n := r.Number(t, `SELECT count(*) FROM span WHERE python_stack_id IS NOT NULL AND python_stack_id NOT IN (SELECT stack_id
					FROM stack)`); n != 0 {
					t.Errorf("%d rows have a line that is no row of stack", n)
				}
				if name == "trainer, whole" {
					trainersStepsAndStacks(t, r, v)
				}
			})
		}
	})
}

// trainersStepsAndStacks: a job like a trainer library's, whose steps have two backward
// passes each, is told from its evaluations (not on 1.13, which has backward passes alone),
// and its stacks are whole. How deep the deepest is that a sample falls on is luck (56 to
// 71 frames in ten runs); a walk that gave up early would not pass for complete.
func trainersStepsAndStacks(t *testing.T, r *harness.Recording, v harness.Torch) {
	t.Helper()
	row := r.Rows(t, `SELECT count(*), count(*) FILTER (status = 'complete'), max(len(frames))
		FROM sample JOIN stack USING (stack_id) WHERE ts_ns >= (SELECT min(ts_ns) FROM span WHERE layer = 'autograd')`)[0]
	all, complete, deepest := harness.Integer(t, row[0]), harness.Integer(t, row[1]), harness.Integer(t, row[2])
	t.Logf("%d samples with a stack, %d complete, the deepest of %d frames", all, complete, deepest)
	if all < 200 || float64(complete) < 0.97*float64(all) || deepest < 48 {
		t.Errorf("of %d samples with a stack %d are complete, the deepest of %d frames", all, complete, deepest)
	}
	if v != harness.PyPI {
		return
	}
	var answer struct {
		Processes []struct {
			Sequence string `json:"sequence"`
			Steps    struct {
				Count int `json:"count"`
			} `json:"steps"`
			Evaluate int `json:"evaluate_count"`
		} `json:"processes"`
	}
	harness.Ask(t, &answer, "steps", r.Dataset, "--json")
	if got, want := fmt.Sprint(answer.Processes), fmt.Sprintf("[{LBLBO {%d} %d}]", r.Truth.Train, r.Truth.Evaluate); got != want ||
		r.Truth.Evaluate == 0 {
		t.Errorf("sequence, steps and evaluation steps are %s, want %s", got, want)
	}
}
