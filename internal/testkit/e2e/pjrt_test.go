package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// stubPlugin is the path of a plugin in one of its shapes.
func stubPlugin(t *testing.T, shape string) string {
	t.Helper()
	path := filepath.Join("..", "..", "..", "testdata", "stubs", "pjrt", "build", shape+".so")
	if _, err := os.Stat(path); err != nil {
		t.Skip("the stub devices are not built: run `make native`")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return absolute
}

// pluginDriver starts the driver of a stub plugin and waits until it does.
func pluginDriver(t *testing.T, plugin, when string, environment ...string) *harness.Command {
	t.Helper()
	c := harness.Start(t, append(append([]string{"env"}, environment...), filepath.Join(filepath.Dir(plugin), "driver"), plugin, "40",
		when)...)
	c.Line(t, "ready ")
	return c
}

// probed waits until the functions of the driver's plugin are probed, once it has told
// that their table is made.
func waitForPlugin(t *testing.T, c *harness.Command, plugin string) {
	t.Helper()
	c.Until(t, "that the table is made", func(out []string, _ string) bool { return strings.Contains(strings.Join(out, " "), " made ") })
	becomesProbed(t, c.Process.Pid, plugin)
}

// checkPlugin compares everything that a driver did with what was recorded.
func checkPlugin(t *testing.T, r *harness.Recording, told harness.PJRTTruth) {
	t.Helper()
	r.Lossless(t)
	executions := map[string]string{}
	for _, row := range r.Rows(t, `SELECT name, count(*), max(device_count), max(argument_count), count(DISTINCT correlation_id),
		count(handle), max(name_source)
		FROM span WHERE runtime = 'pjrt' AND category = 'launch' AND device_count <= 8 GROUP BY ALL`) {
		executions[fmt.Sprint(row[0])] = line(row[1:]...)
	}
	for name, want := range told.Executions {
		if got, want := executions[name], line(want.Calls, want.Devices, want.Arguments, want.LaunchIDs, want.Calls, "getfunction"); got != want {
			t.Errorf("executable %s: recorded %s, want %s (calls, devices, arguments, launch ids, handles, source of the name)", name, got, want)
		}
		delete(executions, name)
	}
	if len(executions) > 0 || len(told.Executions) == 0 {
		t.Errorf("executions of another name: %v", executions)
	}
	counts := r.Counts(t, `SELECT name, count(*) FROM span WHERE runtime = 'pjrt' AND category != 'launch' GROUP BY ALL`)
	for name, want := range map[string]int64{
		"PJRT_Client_Compile": told.Compiled, "PJRT_Buffer_Destroy": told.Destroyed, "PJRT_Event_Await": told.Awaited,
		"PJRT_Client_Create": 1, "PJRT_Client_Destroy": 1, "PJRT_Error_GetCode": told.Refused,
	} {
		if counts[name] != want {
			t.Errorf("%s: recorded %d, want %d", name, counts[name], want)
		}
	}
	checkTransfers(t, r, told)
}

func checkTransfers(t *testing.T, r *harness.Recording, told harness.PJRTTruth) {
	t.Helper()
	sent := map[string]harness.Calls{}
	for _, row := range r.Rows(t, `SELECT dtype, count(*), sum(bytes) FROM span WHERE name = 'PJRT_Client_BufferFromHostBuffer'
		AND direction = 'host_to_device' GROUP BY ALL`) {
		sent[fmt.Sprint(row[0])] = harness.Calls{Calls: harness.Integer(t, row[1]), Bytes: harness.Integer(t, row[2])}
	}
	if fmt.Sprint(sent) != fmt.Sprint(told.Sent) {
		t.Errorf("arrays sent, by type: recorded %v, want %v", sent, told.Sent)
	}
	// Each array is asked for its size first, which moves nothing.
	received := r.Rows(t, `SELECT count(bytes), sum(bytes), count(*) - count(bytes) FROM span WHERE name = 'PJRT_Buffer_ToHostBuffer'`)[0]
	if got, want := line(received...), line(told.Received.Calls, told.Received.Bytes, told.Received.Calls); got != want {
		t.Errorf("arrays received: recorded %s, want %s (copies, bytes, questions)", got, want)
	}
	refused := r.Number(t, `SELECT count(*) FROM span WHERE category = 'launch' AND device_count = 9`)
	codes := r.Number(t, `SELECT count(*) FROM span WHERE name = 'PJRT_Error_GetCode' AND error_code = 8`)
	if refused != told.Refused || codes != told.Refused {
		t.Errorf("refused: recorded %d executions and %d codes, want %d", refused, codes, told.Refused)
	}
}

// TestStubPluginInEveryShape: a table made at the first call or there from the
// start, of an older and a newer version, with and without stack protectors.
func TestStubPluginInEveryShape(t *testing.T) {
	harness.Beside(t, "pjrt")
	for _, shape := range []string{"plugin", "static", "old", "newer", "unprotected"} {
		t.Run(shape, func(t *testing.T) {
			plugin := stubPlugin(t, shape)
			job := pluginDriver(t, plugin, "start,made")
			tracing := harness.Attach(t, harness.Unbudgeted, job.Process.Pid)
			job.GoOn(t)
			waitForPlugin(t, job, plugin)
			job.GoOn(t)
			told := job.FinishJob(t)
			r := tracing.Finish(t)
			checkPlugin(t, r, told.PJRT)
			newer := r.Number(t, `SELECT count(*) FROM warning WHERE kind = 'library' AND detail LIKE '%%newer than%%'`)
			if (newer > 0) != (shape == "newer") {
				t.Errorf("%d warnings of functions that are newer", newer)
			}
		})
	}
}

func TestAPluginWhoseTableIsMadeAfterTheAttachIsSeenFromThenOn(t *testing.T) {
	harness.Beside(t, "pjrt")
	plugin := stubPlugin(t, "plugin")
	job := pluginDriver(t, plugin, "loaded,made")
	tracing := harness.Attach(t, harness.Unbudgeted, job.Process.Pid)
	job.GoOn(t)
	waitForPlugin(t, job, plugin)
	job.GoOn(t)
	told := job.FinishJob(t)
	checkPlugin(t, tracing.Finish(t), told.PJRT)
}

func TestExecutablesOlderThanTheAttachAreCountedWithoutTheirNames(t *testing.T) {
	harness.Beside(t, "pjrt")
	plugin := stubPlugin(t, "plugin")
	job := pluginDriver(t, plugin, "running")
	tracing := harness.Attach(t, harness.Unbudgeted, job.Process.Pid)
	job.GoOn(t)
	told := job.FinishJob(t).PJRT
	r := tracing.Finish(t)
	r.Lossless(t)
	got := r.Counts(t, `SELECT device_count, count(*) FROM span WHERE name = 'PJRT_LoadedExecutable_Execute' AND name_source = 'unknown'
		GROUP BY ALL`)
	want := map[string]int64{"9": told.Refused}
	for _, e := range told.Executions {
		want[fmt.Sprint(e.Devices)] = e.Calls
	}
	harness.SameCounts(t, "executions, by number of devices", got, want)
	if handles := r.Number(t, `SELECT count(DISTINCT handle) FROM span WHERE category = 'launch'`); handles != int64(len(told.Executions)) {
		t.Errorf("%d executables are told apart, want %d", handles, len(told.Executions))
	}
	checkTransfers(t, r, told)
}

// TestAPluginAroundAnotherOne: two plugins in one process, of which one passes
// everything on. What both have is counted once, inside the call of the outer one.
func TestAPluginAroundAnotherOne(t *testing.T) {
	harness.Beside(t, "pjrt")
	wrapper, inner := stubPlugin(t, "wrapper"), stubPlugin(t, "plugin")
	job := pluginDriver(t, wrapper, "start,made", "WRAPPED_PLUGIN="+inner)
	tracing := harness.Attach(t, harness.Unbudgeted, job.Process.Pid)
	job.GoOn(t)
	waitForPlugin(t, job, wrapper)
	job.GoOn(t)
	told := job.FinishJob(t).PJRT
	r := tracing.Finish(t)
	r.Lossless(t)
	executions := told.Refused
	for _, e := range told.Executions {
		executions += e.Calls
	}
	nested := r.Number(t, `SELECT count(*) FROM span o JOIN span i ON i.parent_id = o.span_id AND i.handle = o.handle
		WHERE o.category = 'interposer' AND i.category = 'launch'`)
	if all := r.Number(t, `SELECT count(*) FROM span WHERE category = 'launch'`); nested != executions || all != executions {
		t.Errorf("%d executions, %d inside a call of the wrapper, want %d", all, nested, executions)
	}
	if n := r.Number(t, `SELECT count(*) FROM warning WHERE kind = 'library' AND source LIKE '%%wrapper.so'
		AND detail LIKE '%%in another library%%'`); n != 1 {
		t.Errorf("%d warnings that the wrapper's functions lie elsewhere, want 1", n)
	}
}

func TestAPluginThatCannotBeReadIsSaidToBeSo(t *testing.T) {
	harness.Beside(t, "pjrt")
	for _, c := range []struct{ name, shape, when, detail string }{
		{"an unknown major version", "major", "running", "unknown major version"},
		{"a table that was never made", "plugin", "loaded", "has not made its function table yet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := pluginDriver(t, stubPlugin(t, c.shape), c.when)
			tracing := harness.Attach(t, harness.Unbudgeted, job.Process.Pid)
			tracing.Process.Signal(os.Interrupt)
			if code, err := tracing.Wait(); code != 5 {
				t.Errorf("exit code %d, %v, want 5: nothing was captured", code, err)
			}
			r := &harness.Recording{Dataset: tracing.Dataset}
			if n := r.Number(t, `SELECT count(*) FROM warning WHERE kind = 'library' AND detail LIKE '%s'`, "%"+c.detail+"%"); n != 1 {
				t.Errorf("%d warnings that say %q, want 1", n, c.detail)
			}
			job.GoOn(t)
			job.FinishJob(t)
		})
	}
}

// line joins values with spaces.
func line(values ...any) string { return strings.TrimSuffix(fmt.Sprintln(values...), "\n") }
