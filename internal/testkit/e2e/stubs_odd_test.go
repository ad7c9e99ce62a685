package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
)

// Stub devices in odd circumstances: libraries that are loaded twice or by half,
// kernels launched by host functions, from inside operators, and by jobs that
// are recorded from before their start.

func stubPath(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(stub(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// traceOdd records a program that has no expectations to tell.
func traceOdd(t *testing.T, groups string, argv ...string) *harness.Recording {
	t.Helper()
	job := harness.Start(t, argv...)
	job.Line(t, "ready ")
	tracing := harness.Attach(t, append([]string{"--probe", groups}, harness.Unbudgeted...), job.Process.Pid)
	job.GoOn(t)
	if code, err := job.Wait(); err != nil || code != 0 {
		t.Fatalf("%s: exit code %d, %v\n%s", job, code, err, job.Transcript())
	}
	return tracing.Finish(t)
}

const launchesByName = `SELECT name || ' ' || name_source, count(*) FROM span WHERE category = 'launch' GROUP BY ALL`

// TestTwoCopiesOfARuntimeAreBothSeen: a second libcuda in a namespace of its own
// (dlmopen), of the same file and of another one.
func TestTwoCopiesOfARuntimeAreBothSeen(t *testing.T) {
	harness.Beside(t, "libcuda")
	for _, second := range []string{"libcuda.so.1", "moved/libcuda.so.1"} {
		t.Run(second, func(t *testing.T) {
			r := traceOdd(t, cudaGroups, stubPath(t, "odd"), "twice", stubPath(t, second))
			r.Lossless(t)
			harness.SameCounts(t, "launches", r.Counts(t, launchesByName), map[string]int64{"first getfunction": 5, "second getfunction": 3})
		})
	}
}

// TestLibrariesThatAreMappedByHalfDoNotStopTheRest: files with the name of a
// runtime of which only the first page is mapped, that end in the middle of their
// tables, that are empty but for a header, or no libraries at all.
func TestLibrariesThatAreMappedByHalfDoNotStopTheRest(t *testing.T) {
	harness.Beside(t, "libcuda")
	whole, err := os.ReadFile(stubPath(t, "libcuda.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	files := []string{}
	for name, content := range map[string][]byte{
		"whole": append(whole, "another build"...), "torn": whole[:len(whole)/2], "header": whole[:4096],
		"text": []byte(strings.Repeat("no library\n", 1000)),
	} {
		at := filepath.Join(directory, name, "libcuda.so.1")
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, content, 0o755); err != nil {
			t.Fatal(err)
		}
		files = append(files, at)
	}
	r := traceOdd(t, cudaGroups, append([]string{stubPath(t, "odd"), "mapped"}, files...)...)
	harness.SameCounts(t, "launches", r.Counts(t, launchesByName), map[string]int64{"first getfunction": 5})
	// What cannot be probed is said to be so. Half of this file has all its symbols.
	harness.SameCounts(t, "warnings", r.Counts(t, `SELECT parse_path(source)[-2] || ': ' || CASE WHEN detail LIKE '%%not an ELF file'
		THEN 'no ELF'
		WHEN detail LIKE '%%exports none of its functions%%' THEN 'no functions' ELSE detail END, count(*) FROM warning WHERE kind = 'library'
		GROUP BY ALL`),
		map[string]int64{"text: no ELF": 1, "header: no functions": 1})
	if n := r.Number(t, "SELECT count(*) FROM library WHERE path LIKE '%%/libcuda.so.1'"); n != 5 {
		t.Errorf("%d files of that name in table library, want 5", n)
	}
}

// TestANewerDriverSaysWhatIsNotSeenOfIt: it has layouts of known functions that
// the catalog does not know. The others are recorded as ever.
func TestANewerDriverSaysWhatIsNotSeenOfIt(t *testing.T) {
	harness.Beside(t, "libcuda")
	newer := "LD_LIBRARY_PATH=" + filepath.Dir(stubPath(t, "newer/libcuda.so.1"))
	r := traceOdd(t, cudaGroups, "env", newer, stubPath(t, "odd"), "twice", stubPath(t, "moved/libcuda.so.1"))
	r.Lossless(t)
	harness.SameCounts(t, "launches", r.Counts(t, launchesByName), map[string]int64{"first getfunction": 5, "second getfunction": 3})
	rows := r.Rows(t, "SELECT parse_dirname(source), count, detail FROM warning WHERE kind = 'library' AND detail LIKE 'variants of "+
		"functions%%'")
	const unseen = "cuLaunchKernelEx_v2, cuLaunchKernelEx_v2_ptsz, cuMemAlloc_v3"
	if len(rows) != 1 || harness.Integer(t, rows[0][1]) != 3 || !strings.HasSuffix(rows[0][2].(string), unseen) {
		t.Errorf("warnings: %v, want one that names %s", rows, unseen)
	}
}

// TestTornStringsAreNamesOrCountedReasons: names that end where their memory does,
// that have no end, that are no text, or longer than is kept. Results that go to
// NULL are none, and no failed reads.
func TestTornStringsAreNamesOrCountedReasons(t *testing.T) {
	harness.Beside(t, "libcuda")
	r := traceOdd(t, cudaGroups, stubPath(t, "odd"), "torn", "-")
	harness.SameCounts(t, "launches", r.Counts(t, launchesByName), map[string]int64{
		"edge_of_a_page cufunc_struct": 1, "kernel of odd library": 5, // four handles, and a name without letters
		"fetched_at_the_edge getfunction": 1, "\uFFFD\x01 bytes getfunction": 1, "schön getfunction": 1, "cut\uFFFD getfunction": 1,
		strings.Repeat("k", 4095) + " getfunction": 1,
	})
	harness.SameCounts(t, "reasons", r.Counts(t, `SELECT source, CAST(sum(count) AS BIGINT) FROM warning WHERE source LIKE 'kernel_name:%%'
		OR source IN ('text_cut', 'read_fault') GROUP BY ALL`),
		map[string]int64{"kernel_name:no_name": 5, "text_cut": 1})
}

// TestHostFunctionsNameTheKernelsOfTheRuntimeLibrary: handles behind which is no
// name, launched through the runtime library by functions of the program.
func TestHostFunctionsNameTheKernelsOfTheRuntimeLibrary(t *testing.T) {
	harness.Beside(t, "libcuda")
	program := stubPath(t, "hoststubs")
	r := traceOdd(t, cudaGroups+",cuda-stubs", program)
	r.Lossless(t)
	harness.SameCounts(t, "launches", r.Counts(t, launchesByName), map[string]int64{
		"scale(float*, int) host_stub": 5, "add(float*, float*, int) host_stub": 3, "wait() host_stub": 2,
		"later() host_stub": 4, "kernel of hoststubs library": 1,
	})
	// The runtime library's calls are no launches of their own.
	if n := r.Number(t, "SELECT count(*) FROM span WHERE name LIKE 'cudaLaunch%%'"); n != 0 {
		t.Errorf("%d rows of the runtime library's launches", n)
	}
	// Without that group the library that called the driver is what is known.
	plain := traceOdd(t, cudaGroups, program)
	harness.SameCounts(t, "launches without the host functions", plain.Counts(t, launchesByName),
		map[string]int64{"kernel of libcudart.so.12 library": 14, "kernel of hoststubs library": 1})
}

// TestALaunchIsInsideTheOperatorThatMadeIt: the parent of a driver's call is the
// operator, the backward node or the scope around it.
func TestALaunchIsInsideTheOperatorThatMadeIt(t *testing.T) {
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		job := harness.StartJob(t, v.Job("driver.py", stubPath(t, "libcuda.so.1"))...)
		tracing := harness.Attach(t, append([]string{"--probe", "op,autograd,scope,cuda"}, harness.Unbudgeted...), job.Process.Pid)
		job.GoOn(t)
		job.FinishJob(t)
		r := tracing.Finish(t)
		r.Lossless(t)
		got := r.Counts(t, `SELECT s.name || ' in ' || coalesce(p.layer || ' ' || p.name, 'nothing'), count(*) FROM span s
			LEFT JOIN span p ON p.span_id = s.parent_id WHERE s.category = 'launch' GROUP BY ALL`)
		scope := "scope ours"
		if v.Name == harness.Debian.Name {
			scope = "nothing" // its scopes begin and end with calls that are over by then
		}
		want := map[string]int64{
			"mul in op aten::mul": 10, "add in op aten::add": 20, "forward in scope Square": 10,
			"backward in scope SquareBackward": 10, "scoped in " + scope: 10, "alone in nothing": 10,
		}
		harness.SameCounts(t, "launches, and what they are in", got, want)
	}, "libcuda")
}

// TestStubsRecordedFromBeforeTheirStart: under `run`, nothing of the program is
// older than the recording.
func TestStubsRecordedFromBeforeTheirStart(t *testing.T) {
	harness.Beside(t, "libcuda", "hip", "nccl", "level_zero", "neuron")
	for _, c := range []struct{ runtime, groups, program, library string }{
		{"cuda", cudaGroups, "cudacalls", "/libcuda.so"}, {"hip", hipGroups, "hipcalls", "/libamdhip64.so"}, {"nccl", "nccl", "ncclcalls",
			"/libnccl.so"},
		{"level_zero", levelZeroGroups, "levelzerocalls", "/libze_loader.so"}, {"neuron", neuronGroups, "nrtcalls", "/libnrt.so"},
	} {
		t.Run(c.runtime, func(t *testing.T) {
			program := stub(t, c.program)
			if c.runtime == "level_zero" {
				program = levelZeroStub(t)
			}
			dataset := filepath.Join(t.TempDir(), "dataset")
			line := append([]string{harness.Binary, "run", "--output", dataset, "--probe", c.groups}, harness.Unbudgeted...)
			job := harness.Start(t, append(line, "--", program, "all", "wait")...)
			job.Line(t, "ready ")
			becomesLinked(t, job.Process.Pid, job.ReadyPID(t), c.library, strings.Split(c.groups, ",")...) // which 'run' does not wait for
			job.GoOn(t)
			if code, err := job.Wait(); err != nil || code != 0 {
				t.Fatalf("%s: exit code %d, %v\n%s", job, code, err, job.Transcript())
			}
			r := &harness.Recording{Dataset: dataset}
			r.Lossless(t)
			want := expectationsOf(t, job)
			if c.runtime == "neuron" { // collectives have a runtime too, and another layer
				for i := range want.calls {
					want.calls[i].columns["name"] = want.calls[i].symbol
				}
			}
			checkCalls(t, r, c.runtime, want.calls)
			checkMemory(t, r, want.memory)
			if n := r.Number(t, fmt.Sprintf("SELECT count(*) FROM span WHERE runtime = '%s' AND status = 'ok'", c.runtime)); n < 20 {
				t.Errorf("%d calls that succeeded", n)
			}
		})
	}
}

// TestCallsUnderWayAreRecordedFromOneToAnother: the tracer comes and goes while
// three threads call and call. Of each it has every call between its first and
// its last, with all arguments and an end.
func TestCallsUnderWayAreRecordedFromOneToAnother(t *testing.T) {
	harness.Beside(t, "libcuda", "hip", "nccl")
	const sizes = "grid_y, grid_z, block_x, block_y, block_z, shared_bytes - grid_x %% 1000"
	for _, c := range []struct{ name, groups, program, number, others, want string }{
		{"cuda", cudaGroups, "cudacalls", "grid_x", sizes, "[2 3 32 5 6 0]"},
		{"hip", hipGroups, "hipcalls", "grid_x", sizes, "[2 3 32 5 6 0]"},
		{"nccl", "nccl", "ncclcalls", "element_count", "dtype, bytes - 4 * element_count, stream", "[float32 0 30464]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := harness.Start(t, stub(t, c.program), "steady")
			job.Line(t, "ready ")
			tracing := harness.Attach(t, append([]string{"--probe", c.groups}, harness.Unbudgeted...), job.Process.Pid)
			untilEachHasSlept(t, job.Process.Pid, 3, 1500) // after each call
			r := tracing.Interrupt(t)
			job.GoOn(t)
			if code, err := job.Wait(); err != nil || code != 0 {
				t.Fatalf("%s: exit code %d, %v", job, code, err)
			}
			r.Lossless(t)
			made := map[int64]int64{}
			for _, line := range job.Lines() {
				var tid, last int64
				if n, _ := fmt.Sscanf(line, "made %d %d", &tid, &last); n == 2 {
					made[tid] = last
				}
			}
			rows := r.Rows(t, `SELECT tid, min(number), max(number), count(*), count(DISTINCT number), count(*) FILTER (WHERE after != number - 1),
				count(*) FILTER (WHERE end_method != 'return' OR status != 'ok'), max(number) FILTER (WHERE end_method != 'return' OR status != 'ok')
				FROM (SELECT *, lag(number) OVER (PARTITION BY tid ORDER BY ts_ns) AS after FROM
					(SELECT tid, ts_ns, status, end_method, `+c.number+` AS number FROM span WHERE runtime = '`+c.name+`'))
				GROUP BY tid ORDER BY tid`)
			if len(rows) != 3 || len(made) != 3 {
				t.Fatalf("%d threads were recorded, %d called: %v", len(rows), len(made), rows)
			}
			for _, row := range rows {
				first, last, n := harness.Integer(t, row[1]), harness.Integer(t, row[2]), harness.Integer(t, row[3])
				t.Logf("calls %d to %d of %d", first, last, made[harness.Integer(t, row[0])])
				if n != last-first+1 || harness.Integer(t, row[4]) != n || harness.Integer(t, row[5]) != 0 || n < 1000 || first == 1 ||
					last >= made[harness.Integer(t, row[0])] {
					t.Errorf("%d calls, from %d to %d of %d: not one after the other", n, first, last, made[harness.Integer(t, row[0])])
				}
				// The one that was under way at the end may have none of its own.
				if open := harness.Integer(t, row[6]); open > 1 || open == 1 && harness.Integer(t, row[7]) != last {
					t.Errorf("%d calls without an end or a status", open)
				}
			}
			others := r.Rows(t, "SELECT DISTINCT "+c.others+" FROM span WHERE runtime = '"+c.name+"'")
			if len(others) != 1 || fmt.Sprint(others[0]) != c.want {
				t.Errorf("the other arguments are %v, want %s", others, c.want)
			}
		})
	}
}

// untilEachHasSlept waits until so many threads of a process have given up their CPU so many times since now.
func untilEachHasSlept(t *testing.T, pid, threads, times int) {
	t.Helper()
	slept := func() map[string]int {
		all := map[string]int{}
		paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		for _, path := range paths {
			text, _ := os.ReadFile(path)
			if _, count, ok := strings.Cut(string(text), "\nvoluntary_ctxt_switches:"); ok {
				n := 0
				fmt.Sscan(count, &n)
				all[path] = n
			}
		}
		return all
	}
	begin := slept()
	for deadline := time.Now().Add(harness.Patience); ; time.Sleep(20 * time.Millisecond) {
		enough := 0
		for path, n := range slept() {
			if n-begin[path] >= times {
				enough++
			}
		}
		if enough >= threads {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d threads have slept %d times within %s, not %d", enough, times, harness.Patience, threads)
		}
	}
}
