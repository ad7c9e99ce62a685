package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/e2e/harness"
)

// A compiling job: Inductor's kernels are counted call by call under the names that the
// generated modules give them, and Dynamo's work is there by what caused it.
func TestWhatTorchCompiles(t *testing.T) {
	v := harness.PyPI
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("no g++ here")
	}
	v.Beside(t)
	r := harness.RecordReady(t, harness.Unbudgeted, v.Job("compiled.py")...)
	if len(r.Truth.Fused) < 2 {
		t.Fatalf("the job made %v", r.Truth.Fused)
	}
	fused := r.Counts(t, "SELECT name, count(*) FROM span WHERE category = 'fused' AND layer = 'op' AND end_method = 'exit_site' AND status = 'ok' AND %s GROUP BY ALL",
		r.Region(t))
	if !reflect.DeepEqual(fused, r.Truth.Fused) {
		t.Errorf("kernels %v, the job called %v", fused, r.Truth.Fused)
	}
	for name := range fused {
		row := r.Rows(t, "SELECT count(DISTINCT fused_operators), any_value(fused_operators), count(DISTINCT python_stack_id) FROM span WHERE name = '%s' AND %s", name, r.Region(t))[0]
		operators := strings.Trim(strings.ReplaceAll(strings.ReplaceAll(fmt.Sprint(row[1]), `","`, "_"), "aten::", ""), `["]`)
		if harness.Integer(t, row[0]) != 1 || !strings.HasPrefix(name, "cpp_fused_"+operators+"_") {
			t.Errorf("%s replaces %v", name, row[1])
		}
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
		if row[0] != caused.kind || row[1] != caused.function || filepath.Base(fmt.Sprint(row[2])) != "compiled.py" || harness.Integer(t, row[3]) != caused.line {
			t.Errorf("compilation %d is %v, want %+v", i, row, caused)
		}
	}
	spent := r.Number(t, "SELECT sum(duration_ns)::BIGINT FROM span WHERE category = 'compile' AND name = 'dynamo_compile'")
	if spent < r.Truth.CompileNS*95/100 || spent > r.Truth.CompileNS*105/100 {
		t.Errorf("%d ns in compilations, torch._dynamo counts %d", spent, r.Truth.CompileNS)
	}
	t.Logf("compilations %.3f s, by torch._dynamo %.3f s", float64(spent)/1e9, float64(r.Truth.CompileNS)/1e9)
}
