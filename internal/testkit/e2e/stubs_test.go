package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// The stub runtimes of testdata/stubs have the entry points of the real ones and
// nothing behind them: these tests show what is recorded of calls, not that a
// device works.

var buildStubs = sync.OnceValue(func() error {
	out, err := exec.Command("make", "-s", "-C", stubDirectory).CombinedOutput()
	if err != nil {
		return fmt.Errorf("building the stubs: %w\n%s", err, out)
	}
	return nil
})

var stubDirectory = filepath.Join("..", "..", "..", "testdata", "stubs")

func stub(t *testing.T, name string) string {
	t.Helper()
	harness.NeedKernel(t)
	if err := buildStubs(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(stubDirectory, "build", name)
}

// expectedCall is a call that the program made and says what to expect of.
type expectedCall struct {
	symbol, category string
	columns          map[string]string
}

type expectedMemory struct{ action, space, bytes, address, device string }

// expectations are what a program of stub calls said (testdata/stubs/expect.h).
type expectations struct {
	calls  []expectedCall
	memory []expectedMemory
}

// traceStub records a program of stub calls from its "ready" on.
func traceStub(t *testing.T, groups string, argv ...string) (*harness.Recording, expectations) {
	t.Helper()
	job := harness.Start(t, append(argv, "wait")...)
	job.Line(t, "ready ")
	tracing := harness.Attach(t, append([]string{"--probe", groups}, harness.Unbudgeted...), job.Process.Pid)
	job.GoOn(t)
	if code, err := job.Wait(); err != nil || code != 0 {
		t.Fatalf("%s: exit code %d, %v\n%s", job, code, err, job.Transcript())
	}
	r := tracing.Finish(t)
	r.Lossless(t)
	return r, expectationsOf(t, job)
}

type stubRecording struct {
	*harness.Recording
	want expectations
}

var stubRecordings sync.Map

// sharedStub makes a recording that several tests look at, once. They trace one
// library, and so only one of them runs at a time.
func sharedStub(t *testing.T, groups string, argv ...string) (*harness.Recording, expectations) {
	t.Helper()
	key := strings.Join(argv, "\x00")
	if made, ok := stubRecordings.Load(key); ok {
		return made.(stubRecording).Recording, made.(stubRecording).want
	}
	r, want := traceStub(t, groups, argv...)
	stubRecordings.Store(key, stubRecording{r, want})
	return r, want
}

func expectationsOf(t *testing.T, c *harness.Command) (e expectations) {
	t.Helper()
	if !slices.Contains(c.Lines(), "end") {
		t.Fatalf("%s did not come to its end", c)
	}
	for _, line := range c.Lines() {
		words := strings.Fields(line)
		switch {
		case len(words) >= 3 && words[0] == "call":
			e.calls = append(e.calls, expectedCall{words[1], words[2], map[string]string{}})
			e.calls[len(e.calls)-1].says(words[3:])
		case len(words) > 1 && words[0] == "also" && len(e.calls) > 0:
			e.calls[len(e.calls)-1].says(words[1:])
		case len(words) == 6 && words[0] == "memory":
			e.memory = append(e.memory, expectedMemory{words[1], words[2], words[3], words[4], words[5]})
		}
	}
	return e
}

func (c *expectedCall) says(words []string) {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		c.columns[key] = strings.ReplaceAll(value, "~", " ")
	}
}

// variant is a suffix of a symbol that is no part of the function's name.
var variants = []string{"_v2_ptsz", "_v2_ptds", "_ptsz", "_ptds", "_spt", "_v2", "_v3", "_v4"}

func functionName(symbol string) string {
	for _, v := range variants {
		if name, ok := strings.CutSuffix(symbol, v); ok {
			return name
		}
	}
	return symbol
}

// usuallyNull are columns that a call has only where it says so.
var usuallyNull = []string{"bytes", "direction", "grid_x", "shared_bytes", "stream", "error_code", "name_source"}

// checkCalls compares the recorded calls of one runtime with those that were
// made, one by one, in order.
func checkCalls(t *testing.T, r *harness.Recording, runtime string, want []expectedCall) {
	t.Helper()
	columns := []string{"name", "category", "status"}
	for _, call := range want {
		for key := range call.columns {
			if !slices.Contains(columns, key) {
				columns = append(columns, key)
			}
		}
	}
	for _, key := range usuallyNull {
		if !slices.Contains(columns, key) {
			columns = append(columns, key)
		}
	}
	rows := r.Rows(t, "SELECT %s FROM span WHERE runtime = '%s' ORDER BY ts_ns, span_id", strings.Join(columns, ", "), runtime)
	if len(rows) != len(want) {
		t.Errorf("%d calls recorded, %d made", len(rows), len(want))
	}
	t.Logf("%s: %d of %d calls recorded", runtime, len(rows), len(want)) // internal/dev/matrix reads it
	for i := range min(len(rows), len(want)) {
		if !want[i].matches(t, i, columns, rows[i]) && t.Failed() && i > 400 {
			return
		}
	}
}

func (c *expectedCall) matches(t *testing.T, n int, columns []string, row []any) bool {
	t.Helper()
	good := true
	for i, key := range columns {
		want, said := c.columns[key]
		got := "-"
		if row[i] != nil {
			got = fmt.Sprint(row[i])
		}
		switch {
		case said:
		case key == "name" && (c.category != "launch" && c.category != "graph" || got == functionName(c.symbol)):
			want = functionName(c.symbol)
		case key == "category":
			want = c.category
		case key == "status":
			want = "ok"
		case slices.Contains(usuallyNull, key) && c.category != "launch" && c.category != "graph":
			want = "-"
			if key == "stream" || key == "bytes" {
				want = got // said where it matters
			}
		default:
			continue
		}
		if got != strings.Trim(want, `"`) {
			t.Errorf("call %d, %s: %s is %s, want %s", n, c.symbol, key, got, want)
			good = false
		}
	}
	return good
}

func checkMemory(t *testing.T, r *harness.Recording, want []expectedMemory) {
	t.Helper()
	rows := r.Rows(t, "SELECT action, space, bytes, address, device_id FROM memory WHERE level = 'driver' ORDER BY ts_ns")
	var got []expectedMemory
	for _, row := range rows {
		text := func(i int) string {
			if row[i] == nil {
				return "-"
			}
			return fmt.Sprint(row[i])
		}
		got = append(got, expectedMemory{text(0), text(1), text(2), text(3), text(4)})
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) {
			t.Fatalf("%d changes of memory recorded, want %d", len(got), len(want))
		}
		if got[i] != want[i] {
			t.Errorf("change %d of memory: %+v, want %+v", i, got[i], want[i])
		}
	}
}

// everyFunction fails for each function of the groups that the program did not call.
func everyFunction(t *testing.T, want []expectedCall, groups ...string) {
	t.Helper()
	called := map[string]bool{}
	for _, call := range want {
		called[call.symbol] = true
	}
	functions := 0
	for _, g := range catalog.Groups() {
		if !slices.Contains(groups, g.Name) {
			continue
		}
		for _, f := range g.Functions {
			functions++
			if !called[f.Symbol] {
				t.Errorf("the program does not call %s of group %s", f.Symbol, g.Name)
			}
		}
	}
	t.Logf("%d functions in all variants, %d calls", functions, len(want))
}

// columnOf is where a captured argument shows in span; the rest show in other
// rows, or in what is made of later calls.
var columnOf = map[spec.Field][]string{
	spec.FieldBytes: {"bytes"}, spec.FieldContext: {"context"}, spec.FieldStream: {"stream"},
	spec.FieldGridX: {"grid_x"}, spec.FieldGridY: {"grid_y"}, spec.FieldGridZ: {"grid_z"},
	spec.FieldBlockX: {"block_x"}, spec.FieldBlockY: {"block_y"}, spec.FieldBlockZ: {"block_z"},
	spec.FieldSharedBytes: {"shared_bytes"}, spec.FieldDeviceID: {"device_id"},
	spec.FieldDtype: {"dtype"}, spec.FieldPeer: {"peer_rank"}, spec.FieldRoot: {"peer_rank"},
	spec.FieldRank: {"rank"}, spec.FieldRanks: {"ranks"}, spec.FieldCommunicator: {"communicator_handle"},
	spec.FieldWidth: {"bytes"}, spec.FieldCopyKind: {"direction"}, spec.FieldSourceKind: {"direction"},
	spec.FieldTargetKind: {"direction"}, spec.FieldKernel: {"name", "handle"},
}

// everyArgument fails for each captured argument of the groups' functions of
// which no call says what the column that shows it is to have.
func everyArgument(t *testing.T, want []expectedCall, groups ...string) {
	t.Helper()
	said := map[string]bool{}
	for _, call := range want {
		for column, value := range call.columns {
			said[call.symbol+" "+column] = said[call.symbol+" "+column] || value != "-"
		}
	}
	arguments := 0
	for _, g := range catalog.Groups() {
		if !slices.Contains(groups, g.Name) {
			continue
		}
		for _, f := range g.Functions {
			for _, v := range f.Values {
				columns := columnOf[v.Field]
				switch {
				case len(columns) == 0,
					v.Field == spec.FieldBytes && f.Memory != nil,           // checkMemory
					f.Effect == spec.JoinsAll, f.Effect == spec.SizesKernel: // by the calls that come after
					continue
				}
				arguments++
				if !slices.ContainsFunc(columns, func(c string) bool { return said[f.Symbol+" "+c] }) {
					t.Errorf("%s: no call says its %v", f.Symbol, columns)
				}
			}
		}
	}
	t.Logf("%d arguments", arguments)
}

const cudaGroups = "cuda,cuda-memory,cuda-sync,cuda-code"

func TestEveryCallOfCUDAIsRecordedWithItsArguments(t *testing.T) {
	harness.Beside(t, "libcuda")
	r, want := sharedStub(t, cudaGroups, stub(t, "cudacalls"), "all")
	checkCalls(t, r, "cuda", want.calls)
	checkMemory(t, r, want.memory)
	everyFunction(t, want.calls, strings.Split(cudaGroups, ",")...)
	everyArgument(t, want.calls, strings.Split(cudaGroups, ",")...)
}

func TestFailedCallsOfCUDAHaveTheirStatusAndAllocateNothing(t *testing.T) {
	harness.Beside(t, "libcuda")
	r, want := traceStub(t, cudaGroups, stub(t, "cudacalls"), "errors")
	checkCalls(t, r, "cuda", want.calls)
	checkMemory(t, r, want.memory)
}

func TestHandlesOlderThanTheRecordingAreNotGuessed(t *testing.T) {
	harness.Beside(t, "libcuda")
	r, want := traceStub(t, cudaGroups, stub(t, "cudacalls"), "launches", "1000")
	checkCalls(t, r, "cuda", want.calls)
	if n := r.Number(t, "SELECT count(*) FROM span WHERE context IS NOT NULL"); n != 0 {
		t.Errorf("%d launches have a context that was made current before the recording", n)
	}
}

func TestCallsThroughGetProcAddressAreSeen(t *testing.T) {
	harness.Beside(t, "libcuda")
	r, want := traceStub(t, cudaGroups, stub(t, "cudacalls"), "proc")
	checkCalls(t, r, "cuda", want.calls)
	checkMemory(t, r, want.memory)
}

const hipGroups = "hip,hip-memory,hip-sync,hip-code"

func TestEveryCallOfHIPIsRecordedWithItsArguments(t *testing.T) {
	harness.Beside(t, "hip")
	r, want := sharedStub(t, hipGroups, stub(t, "hipcalls"), "all")
	checkCalls(t, r, "hip", want.calls)
	checkMemory(t, r, want.memory)
	everyFunction(t, want.calls, strings.Split(hipGroups, ",")...)
	everyArgument(t, want.calls, strings.Split(hipGroups, ",")...)
}

func TestEveryCallOfNCCLIsRecordedWithItsArguments(t *testing.T) {
	harness.Beside(t, "nccl")
	r, want := traceStub(t, "nccl", stub(t, "ncclcalls"), "all")
	checkCalls(t, r, "nccl", want.calls)
	everyFunction(t, want.calls, "nccl")
	everyArgument(t, want.calls, "nccl")
}

func TestCommunicatorsAreTheSameOnEveryRank(t *testing.T) {
	harness.Beside(t, "nccl")
	program := stub(t, "ncclcalls")
	var whole, parts [3]string
	for rank := range 3 {
		r, _ := traceStub(t, "nccl", program, "ranks", fmt.Sprint(rank))
		rows := r.Rows(t, "SELECT element_count, communicator, rank FROM span WHERE name = 'ncclAllReduce' ORDER BY ts_ns")
		if len(rows) != 2 || rows[0][1] == nil || rows[1][1] == nil || fmt.Sprint(rows[0][2]) != fmt.Sprint(rank) {
			t.Fatalf("rank %d: %v", rank, rows)
		}
		whole[rank], parts[rank] = fmt.Sprint(rows[0][1]), fmt.Sprint(rows[1][1])
	}
	if whole[0] != whole[1] || whole[1] != whole[2] {
		t.Errorf("the communicator of all has the identities %v", whole)
	}
	if parts[0] != parts[2] || parts[0] == parts[1] || parts[0] == whole[0] {
		t.Errorf("ranks 0 and 2 are one part, rank 1 another: %v", parts)
	}
}

// recordRanks runs all ranks of a job on the stub NCCL in step, of which the
// first so many are recorded, and returns of each AllReduce elements, process,
// rank and number of ranks, and for each number of elements how many
// communicators there were and how many calls had one.
func recordRanks(t *testing.T, mode string, all, recorded, rounds int) (calls, parts string, r *harness.Recording) {
	t.Helper()
	program := stub(t, "ncclcalls")
	var ranks []*harness.Command
	var pids []int
	for rank := range all {
		c := harness.Start(t, program, mode, fmt.Sprint(rank), "wait")
		c.Line(t, "ready ")
		ranks, pids = append(ranks, c), append(pids, c.Process.Pid)
	}
	tracing := harness.Attach(t, append([]string{"--probe", "nccl"}, harness.Unbudgeted...), pids[:recorded]...)
	for round := 1; round <= rounds; round++ {
		for _, c := range ranks { // all have come as far
			c.Until(t, "its next word", func(out []string, _ string) bool { return len(out) >= round })
		}
		for _, c := range ranks {
			c.GoOn(t)
		}
	}
	for _, c := range ranks {
		if code, err := c.Wait(); err != nil || code != 0 {
			t.Fatalf("%s: exit code %d, %v", c, code, err)
		}
	}
	r = tracing.Finish(t)
	r.Lossless(t)
	order := "CASE pid"
	for rank, pid := range pids {
		order += fmt.Sprintf(" WHEN %d THEN %d", pid, rank)
	}
	return fmt.Sprint(r.Rows(t, "SELECT element_count, %s END AS who, rank, ranks FROM span WHERE name = 'ncclAllReduce' ORDER BY 1, 2",
			order)),
		fmt.Sprint(r.Rows(t, "SELECT element_count, count(DISTINCT communicator), count(communicator) FROM span WHERE name = 'ncclAllReduce' "+
			"GROUP BY ALL ORDER BY 1")), r
}

// TestPartsHaveTheirRanksWhereAllRanksAreRecorded: four processes of a stub split
// their communicator into {2, 0}, {1} and none for rank 3, then into one of all.
// With one of them unseen no rank is guessed.
func TestPartsHaveTheirRanksWhereAllRanksAreRecorded(t *testing.T) {
	harness.Beside(t, "nccl")
	const all = 4
	for recorded, want := range map[int]string{
		all: "[[30 0 1 2] [30 1 0 1] [30 2 0 2] [30 3 3 4] [40 0 0 4] [40 1 1 4] [40 2 2 4] [40 3 3 4]]",
		3:   "[[30 0 <nil> <nil>] [30 1 <nil> <nil>] [30 2 <nil> <nil>] [40 0 <nil> <nil>] [40 1 <nil> <nil>] [40 2 <nil> <nil>]]",
	} {
		calls, parts, _ := recordRanks(t, "split", all, recorded, 3)
		if calls != want {
			t.Errorf("%d of %d processes recorded: elements, process, rank and ranks are\n%v, want\n%s", recorded, all, calls, want)
		}
		if want := fmt.Sprintf("[[30 %d %d] [40 1 %d]]", recorded-1, recorded, recorded); parts != want {
			t.Errorf("identities: %v, want %s", parts, want)
		}
	}
}

// TestPartsWhoseHandlesComeLaterAreKnown: in one group three ranks are split into
// {2, 0} and none for rank 1 (50 elements), into all (60), and shrunk to {0, 2}
// (70); rank 1 goes on with the whole for the first and the last. Then a split that
// does not block turns them round (80). The handle of the next one is moved away
// before it is looked at (90): it is unknown, and the handle that is now at its place
// stays what it was (100).
func TestPartsWhoseHandlesComeLaterAreKnown(t *testing.T) {
	harness.Beside(t, "nccl")
	calls, parts, r := recordRanks(t, "grouped", 3, 3, 4)
	const want = "[[50 0 1 2] [50 1 1 3] [50 2 0 2] [60 0 0 3] [60 1 1 3] [60 2 2 3] [70 0 0 2] [70 1 1 3] [70 2 1 2] " +
		"[80 0 2 3] [80 1 1 3] [80 2 0 3] [90 0 <nil> <nil>] [90 1 <nil> <nil>] [90 2 <nil> <nil>] [100 0 2 3] [100 1 1 3] [100 2 0 3]]"
	if calls != want {
		t.Errorf("elements, process, rank and ranks are\n%v, want\n%s", calls, want)
	}
	if want := "[[50 2 3] [60 1 3] [70 2 3] [80 1 3] [90 0 0] [100 1 3]]"; parts != want {
		t.Errorf("identities: %v, want %s", parts, want)
	}
	same := fmt.Sprint(r.Rows(t, "SELECT count(DISTINCT communicator) FROM span WHERE name = 'ncclAllReduce' AND element_count IN (80, 100)"))
	if same != "[[1]]" {
		t.Errorf("%s communicators in the calls of 80 and 100 elements, which are on one", same)
	}
	if unknown := fmt.Sprint(r.Rows(t, "SELECT sum(count) FROM warning WHERE source = 'communicator_unknown'")); unknown != "[[3]]" {
		t.Errorf("%s collectives on unknown communicators, want 3", unknown)
	}
}

// TestNCCLIsFoundWhereverItIsLinked: inside libtorch_cuda.so, as in wheels of
// PyTorch, and inside a program, beside a libnccl.so.2 of its own. Each call is
// one row, by the probe of the copy that it went through.
func TestNCCLIsFoundWhereverItIsLinked(t *testing.T) {
	harness.Beside(t, "nccl")
	library, err := filepath.Abs(stub(t, "libnccl.so.2"))
	if err != nil {
		t.Fatal(err)
	}
	for program, home := range map[string]string{"ncclcalls-torch": "libtorch_cuda.so", "ncclcalls-static": "ncclcalls-static"} {
		r, _ := traceStub(t, "nccl", stub(t, program), "copies", library)
		if n := r.Number(t, "SELECT count(*) FROM span WHERE name = 'ncclAllReduce' AND runtime = 'nccl'"); n != 8 {
			t.Errorf("%s: %d collectives, want 8", program, n)
		}
		harness.SameCounts(t, "hits by library", r.Counts(t, `SELECT parse_filename(library), hits FROM probe WHERE symbol = 'ncclAllReduce'`),
			map[string]int64{home: 5, "libnccl.so.2": 3})
	}
}

// TestOlderCommunicatorsHaveTheRankThatTheJobAsksFor: their identity is not
// guessed, and how many collectives lack it is said.
func TestOlderCommunicatorsHaveTheRankThatTheJobAsksFor(t *testing.T) {
	harness.Beside(t, "nccl")
	r, want := traceStub(t, "nccl", stub(t, "ncclcalls"), "late", "0")
	checkCalls(t, r, "nccl", want.calls)
	if n := r.Number(t, "SELECT sum(count) FROM warning WHERE source = 'communicator_unknown'"); n != 2 {
		t.Errorf("%d collectives are said to have no identity, want 2", n)
	}
}

func TestCallsThroughAnInterposerCountOnce(t *testing.T) {
	harness.Beside(t, "libcuda")
	preload, err := filepath.Abs(stub(t, "libcuda-quota.so"))
	if err != nil {
		t.Fatal(err)
	}
	r, want := traceStub(t, cudaGroups, "env", "LD_PRELOAD="+preload, stub(t, "cudacalls"), "proc")
	for sql, n := range map[string]int64{
		"SELECT count(*) FROM span WHERE name = 'cuMemAlloc' AND category = 'alloc'":      1,
		"SELECT count(*) FROM span WHERE name = 'cuMemAlloc' AND category = 'interposer'": 1,
		"SELECT count(*) FROM memory WHERE level = 'driver'":                              1,
	} {
		if got := r.Number(t, sql); got != n {
			t.Errorf("%s: %d, want %d", sql, got, n)
		}
	}
	checkMemory(t, r, want.memory)
}
