package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// TestJAXOnTheCPUIsSeenFromItsSamples: there is no plugin in between, and no
// library that the catalog knows. What is left are samples with their stacks, in
// which XLA's own functions and the Python that called them have their names.
func TestJAXOnTheCPUIsSeenFromItsSamples(t *testing.T) {
	harness.Beside(t, "jax")
	job := harness.StartJob(t, jax(t, "jax_cpu.py")...)
	tracing := harness.Attach(t, harness.Unbudgeted, job.Process.Pid)
	job.GoOn(t)
	if told := job.FinishJob(t); told.Steps == 0 {
		t.Fatal("the job made no steps")
	}
	r := tracing.Finish(t)
	r.Lossless(t)
	if n := r.Number(t, `SELECT count(*) FROM span WHERE runtime IS NOT NULL`); n != 0 {
		t.Errorf("%d spans of an accelerator runtime, want none", n)
	}
	if n := r.Number(t, `SELECT count(*) FROM process WHERE framework = 'jax'`); n == 0 {
		t.Error("the framework is not known")
	}
	onCPU := r.Number(t, `SELECT count(*) FROM sample WHERE state = 'on_cpu'`)
	inside := r.Number(t, `SELECT count(*) FROM sample JOIN stack USING (stack_id) WHERE state = 'on_cpu' AND folded LIKE '%%xla::%%'`)
	if onCPU == 0 || inside == 0 {
		t.Errorf("%d samples on the CPU, %d of them inside XLA; want some", onCPU, inside)
	}
}

// jax is a command line that runs a job under JAX.
func jax(t *testing.T, script string, args ...string) []string {
	t.Helper()
	python := filepath.Join(harness.Cache(), "jax-venv", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Skip("JAX is not installed: run `make jax`")
	}
	return append([]string{python, filepath.Join("..", "..", "..", "testdata", "jobs", script)}, args...)
}

// onPlugin records JAX on XLA's CPU client behind the plugin interface.
func onPlugin(t *testing.T, args ...string) (*harness.Recording, harness.JAXTruth) {
	t.Helper()
	harness.NeedKernel(t)
	plugin := filepath.Join(harness.Cache(), "pjrt", "xla_cpu_plugin.so")
	if _, err := os.Stat(plugin); err != nil {
		t.Skip("XLA's CPU plugin is not there: run `make jax`")
	}
	job := harness.StartJob(t, jax(t, "jax_plugin.py", append([]string{plugin}, args...)...)...)
	tracing := harness.Attach(t, append(harness.Unbudgeted, "--probe", "pjrt"), job.Process.Pid)
	job.GoOn(t)
	told := job.FinishJob(t).JAX
	r := tracing.Finish(t)
	r.Lossless(t)
	sent := map[string]harness.Calls{}
	for _, row := range r.Rows(t, `SELECT dtype, count(*), sum(bytes) FROM span WHERE name = 'PJRT_Client_BufferFromHostBuffer'
		GROUP BY ALL`) {
		sent[fmt.Sprint(row[0])] = harness.Calls{Calls: harness.Integer(t, row[1]), Bytes: harness.Integer(t, row[2])}
	}
	if fmt.Sprint(sent) != fmt.Sprint(told.Sent) {
		t.Errorf("arrays sent, by type: recorded %v, want %v", sent, told.Sent)
	}
	return r, told
}

// TestRealJAXOnARealPlugin: executions that JAX compiles while it is recorded,
// one for one, by name: the program that names them is read while it is compiled.
func TestRealJAXOnARealPlugin(t *testing.T) {
	harness.Beside(t, "jax")
	r, told := onPlugin(t)
	byArguments(t, r, told, "true")
	names := r.Counts(t, `SELECT name, count(*) FROM span WHERE category = 'launch' AND name_source = 'getfunction' GROUP BY ALL`)
	harness.SameCounts(t, "executions, by name", names, told.Executions)
	if n := r.Number(t, `SELECT count(*) FROM span WHERE category = 'launch' AND end_method != 'exit_site'`); n != 0 {
		t.Errorf("%d executions without an end of their own", n)
	}
}

// byArguments compares executions of executables that are told apart by how many
// arguments they have.
func byArguments(t *testing.T, r *harness.Recording, told harness.JAXTruth, where string) {
	t.Helper()
	want := map[string]int64{}
	for name, n := range told.Executions {
		want[fmt.Sprint(told.Arguments[name])] = n
	}
	harness.SameCounts(t, "executions, by arguments",
		r.Counts(t, `SELECT argument_count, count(*) FROM span WHERE category = 'launch' AND device_count = 1 AND %s GROUP BY ALL`, where), want)
}

// TestRealJAXWhoseExecutablesAreOlderThanTheAttach: the same counts, told apart by
// their arguments, without names.
func TestRealJAXWhoseExecutablesAreOlderThanTheAttach(t *testing.T) {
	harness.Beside(t, "jax")
	r, told := onPlugin(t, "--compiled")
	byArguments(t, r, told, "name_source = 'unknown'")
}

// TestExecutionsAreRecordedAtEveryLevel: they are what the steps of a JAX job are found by,
// also where nothing but anchors is recorded.
func TestExecutionsAreRecordedAtEveryLevel(t *testing.T) {
	harness.Beside(t, "jax")
	harness.NeedKernel(t)
	plugin := filepath.Join(harness.Cache(), "pjrt", "xla_cpu_plugin.so")
	if _, err := os.Stat(plugin); err != nil {
		t.Skip("XLA's CPU plugin is not there: run `make jax`")
	}
	job := harness.StartJob(t, jax(t, "jax_plugin.py", plugin, "--wait", "--compiled", "--count", "60")...)
	tracing := harness.Attach(t, []string{"--level", "anchor", "--budget", "off"}, job.Process.Pid)
	job.GoOn(t)
	told := job.FinishJob(t).JAX
	r := tracing.Finish(t)
	r.Lossless(t)
	var want int64
	for _, n := range told.Executions {
		want += n
	}
	if n := r.Number(t, "SELECT count(*) FROM span WHERE runtime = 'pjrt' AND category = 'launch'"); n != want {
		t.Errorf("%d executions, want %d", n, want)
	}
	if n := r.Number(t, "SELECT count(*) FROM span WHERE category = 'copy'"); n != 0 {
		t.Errorf("%d transfers at the level of anchors", n)
	}
	var steps struct {
		Processes []struct {
			Sequence string `json:"sequence"`
			Steps    struct {
				Count int `json:"count"`
			} `json:"steps"`
		} `json:"processes"`
	}
	harness.Ask(t, &steps, "steps", r.Dataset, "--json")
	if len(steps.Processes) != 1 || steps.Processes[0].Steps.Count < 50 {
		t.Errorf("%+v: want the steps of 60 rounds", steps)
	}
}
