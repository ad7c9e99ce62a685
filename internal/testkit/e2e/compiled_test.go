package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset/query"
	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// A compiling job: Inductor's kernels are counted call by call under the names that the
// generated modules give them, and Dynamo's work is there by what caused it.
func TestWhatTorchCompiles(t *testing.T) {
	v := harness.PyPI
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("no g++ here")
	}
	v.Beside(t)
	// The job takes its modules with it, some 0.2 s after its first step.
	r := harness.RecordReady(t, harness.Unbudgeted, v.Job("compiled.py")...)
	if len(r.Truth.Fused) < 2 {
		t.Fatalf("the job made %v", r.Truth.Fused)
	}
	fused := r.Counts(t, "SELECT name, count(*) FROM span WHERE category = 'fused' AND layer = 'op' AND end_method = 'exit_site' AND status "+
		"= 'ok' AND %s GROUP BY ALL",
		r.Region(t))
	if !reflect.DeepEqual(fused, r.Truth.Fused) {
		t.Errorf("kernels %v, the job called %v", fused, r.Truth.Fused)
		for _, row := range r.Rows(t, `SELECT count(*), python_stack_source, whole, folded FROM span LEFT
			JOIN (SELECT stack_id, status AS whole, folded FROM stack) k ON k.stack_id = span.python_stack_id
			WHERE category = 'fused' AND layer = 'op' AND name = 'cpp_fused' GROUP BY ALL`) {
			t.Logf("without a kernel's name: %v", row)
		}
	}
	for name := range fused {
		row := r.Rows(t, "SELECT count(DISTINCT fused_operators), any_value(fused_operators), count(DISTINCT python_stack_id) FROM span WHERE "+
			"name = '%s' AND %s", name, r.Region(t))[0]
		operators := strings.Trim(strings.ReplaceAll(strings.ReplaceAll(fmt.Sprint(row[1]), `","`, "_"), "aten::", ""), `["]`)
		if harness.Integer(t, row[0]) != 1 || !strings.HasPrefix(name, "cpp_fused_"+operators+"_") {
			t.Errorf("%s replaces %v", name, row[1])
		}
	}
	compiledFunctionsAreScopes(t, r)
	missedCallsAreBounded(t, r)
	compilingIsSampledWhole(t, r)
	if late := r.Rows(t, "SELECT source, sum(count)::BIGINT, count(*) FROM warning WHERE kind = 'late' AND (source = 'generated' OR source "+
		"LIKE '%%inductor-%%') GROUP BY ALL"); len(late) != 1 ||
		late[0][0] != "generated" || harness.Integer(t, late[0][1]) != r.Truth.Libraries || harness.Integer(t, late[0][2]) != 1 {
		t.Errorf("%d libraries were generated, warned of: %v", r.Truth.Libraries, late)
	}
	// f is compiled, breaks, and is compiled again, and so is what is behind the break; the
	// training step is compiled forward and backward.
	kinds := r.Counts(t, "SELECT kind, count(*) FROM compilation GROUP BY ALL")
	harness.SameCounts(t, "compilations", kinds, map[string]int64{"first": 2, "graph_break": 1, "recompilation": 2, "backward": 1})
	if frames := kinds["first"] + kinds["graph_break"] + kinds["recompilation"]; frames != r.Truth.Compilations {
		t.Errorf("%d frames were compiled, %d by Dynamo's count", frames, r.Truth.Compilations)
	}
	breaks := int64(lineOf(t, "compiled.py", "sys.stdout.flush()"))
	for i, row := range r.Rows(t, "SELECT kind, function, file, line FROM compilation WHERE kind <> 'backward' ORDER BY ts_ns LIMIT 4") {
		caused := []struct {
			kind, function string
			line           int64
		}{{"first", "main", int64(r.Truth.Line)}, {"graph_break", "breaking", breaks},
			{"recompilation", "main", int64(r.Truth.Line) + 2}, {"recompilation", "breaking", breaks}}[i]
		if row[0] != caused.kind || row[1] != caused.function || filepath.Base(fmt.Sprint(row[2])) != "compiled.py" ||
			harness.Integer(t, row[3]) != caused.line {
			t.Errorf("compilation %d is %v, want %+v", i, row, caused)
		}
	}
	spent := r.Number(t, "SELECT sum(duration_ns)::BIGINT FROM span WHERE category = 'compile' AND name = 'dynamo_compile'")
	if spent < r.Truth.CompileNS*95/100 || spent > r.Truth.CompileNS*105/100 {
		t.Errorf("%d ns in compilations, torch._dynamo counts %d", spent, r.Truth.CompileNS)
	}
	t.Logf("compilations %.3f s, by torch._dynamo %.3f s", float64(spent)/1e9, float64(r.Truth.CompileNS)/1e9)
}

// compiledFunctionsAreScopes: what AOTAutograd made of the step is called as PyTorch's
// profiler calls it, as often, and around the kernels.
func compiledFunctionsAreScopes(t *testing.T, r *harness.Recording) {
	t.Helper()
	if len(r.Truth.Functions) != 2 {
		t.Errorf("torch.profiler saw %v", r.Truth.Functions)
	}
	harness.SameCounts(t, "compiled functions", r.Counts(t, `SELECT name, count(*) FROM span
		WHERE layer = 'scope' AND category = 'function' AND end_method = 'exit_site' AND status = 'ok' AND %s
		GROUP BY ALL`, r.Region(t)), r.Truth.Functions)
	inside := r.Counts(t, `SELECT coalesce(f.name, 'none'), count(DISTINCT k.name)
		FROM (FROM span WHERE category = 'fused' AND layer = 'op' AND %s) k
		LEFT JOIN span f ON f.span_id = k.parent_id AND f.category = 'function' GROUP BY ALL`, r.Region(t))
	if inside["CompiledFunction"] == 0 || inside["CompiledFunctionBackward"] == 0 || inside["none"] != 0 {
		t.Errorf("kernels by the function that they are in: %v", inside)
	}
}

// missedCallsAreBounded: the step is taken once before the region, with calls of kernels that may
// have no probe yet, and once behind it: what is recorded and what may be missing are all.
func missedCallsAreBounded(t *testing.T, r *harness.Recording) {
	t.Helper()
	example, err := query.FindExample("fused")
	if err != nil {
		t.Fatal(err)
	}
	recorded := r.Counts(t, "SELECT name, count(*) FROM span WHERE category = 'fused' GROUP BY ALL")
	missed := r.Counts(t, "SELECT name, missed_at_most FROM (%s)", strings.TrimSuffix(strings.TrimSpace(example.SQL), ";"))
	for name, calls := range r.Truth.Fused {
		if all := calls / r.Truth.Steps * (r.Truth.Steps + 2); recorded[name]+missed[name] != all {
			t.Errorf("%s: %d calls recorded, %d missed at most, the job made %d", name, recorded[name], missed[name], all)
		}
	}
	t.Logf("calls that may be missing: %v", missed)
}

// compilingIsSampledWhole: nearly all samples of the job, of Inductor's compilers as well,
// have a stack that goes down to the thread's start. Without any are only threads that
// waited for a CPU, on a busy machine, and they are counted.
func compilingIsSampledWhole(t *testing.T, r *harness.Recording) {
	t.Helper()
	all, complete, compilers, without := int64(0), int64(0), int64(0), int64(0)
	reasons := map[string]int64{}
	for _, row := range r.Rows(t, `SELECT coalesce(status, 'none: ' || state || coalesce(' ' || cause, '')), count(*),
		count(*) FILTER (pid IN (SELECT pid FROM process WHERE parent_pid IN (SELECT pid FROM process)))
		FROM sample LEFT JOIN stack USING (stack_id) GROUP BY ALL`) {
		status, n := fmt.Sprint(row[0]), harness.Integer(t, row[1])
		all, compilers = all+n, compilers+harness.Integer(t, row[2])
		switch status {
		case "complete":
			complete += n
		case "none: off_cpu preempted":
			without += n
		default:
			reasons[status] += n
		}
	}
	// Of a program that has just begun its mappings are not read yet, for some milliseconds: half a
	// sample of each, and not a share of all, which on a faster machine are fewer.
	early := reasons["native_no_process"]
	programs := r.Number(t, "SELECT count(*) FROM process")
	with := all - without - early
	t.Logf("%d samples, %d of children; %d without a stack, %d at the beginnings of %d programs, of the others %.1f %% complete, not: %v",
		all, compilers, without, early, programs, 100*float64(complete)/float64(with), reasons)
	if compilers < 100 || float64(complete) < 0.97*float64(with) || early > 2*programs {
		t.Errorf("%d of %d samples are complete, %d are of children; %d of the beginnings of %d programs", complete, with, compilers, early,
			programs)
	}
	if counted := r.Number(t, "SELECT coalesce(sum(count), 0)::BIGINT FROM warning WHERE source = 'preempted_stack'"); counted != without {
		t.Errorf("%d samples have no stack, %d are counted", without, counted)
	}
}
