package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/analysis"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func made(t *testing.T, fill func(*output.Dataset) error) *dataset.DB {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := int64(2e15)
	if err := errors.Join(d.Session(event.Recording{ID: "s", EndedNS: &ended}), fill(d), d.Close()); err != nil {
		t.Fatal(err)
	}
	db, err := dataset.Open(d.Dir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// loop records 30 steps on the CPU: load 2 ms, forward 5, backward 8 (with an
// operator in it), optimizer 3, and 2 ms of nothing.
func loop(d *output.Dataset) error {
	var spans []event.Span
	id, stack := int64(0), int64(5)
	add := func(at, took int64, parent int64, layer, category, name string) int64 {
		id++
		s := event.Span{ID: id, ParentID: parent, StartNS: 1e15 + at*1e6, DurationNS: took * 1e6, PID: 7, TID: 8, End: event.EndExitSite,
			Weight: 1, SequenceNumber: -1,
			Call: &event.Call{Layer: layer, Category: category, Name: name}}
		if layer == "op" {
			s.Detail = &event.Detail{StackID: &stack}
		}
		spans = append(spans, s)
		return id
	}
	for i := range int64(30) {
		at := i * 20
		add(at, 2, 0, "scope", "", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
		add(at+2, 5, 0, "op", "", "aten::mm")
		backward := add(at+7, 8, 0, "autograd", "backward", "Engine::execute")
		node := add(at+7, 7, backward, "autograd", "node", "MmBackward0")
		add(at+8, 4, node, "op", "", "aten::mm")
		add(at+15, 3, 0, "scope", "", "Optimizer.step#SGD.step")
	}
	framework, bytes := "pytorch", int64(1<<20)
	return errors.Join(
		d.Write(&event.Batch{Processes: []event.Process{{ID: 1, PID: 7, Framework: &framework, Command: "python train.py"}}}),
		d.Write(&event.Batch{Stacks: []event.Stack{{ID: 5, Status: event.StackComplete, Frames: []event.Frame{
			{Kind: "python", Function: "linear", File: "/usr/lib/python3/dist-packages/torch/nn.py", Line: 3, Offset: -1},
			{Kind: "python", Function: "forward", File: "/home/me/train.py", Line: 42, Offset: -1}}}}}),
		d.Write(&event.Batch{Spans: spans}),
		d.Write(&event.Batch{Samples: []event.Sample{{TSNS: 1e15, PID: 7, TID: 8, State: event.OnCPU, WeightNS: 5e6, StackID: &stack}}}),
		d.Write(&event.Batch{Memory: []event.Memory{
			{TSNS: 1e15 + 3e6, PID: 7, TID: 8, Space: "host", Level: "allocator", Action: "alloc", Address: 64, Bytes: &bytes, SpanID: 2, Weight: 1},
			{TSNS: 1e15 + 9e6, PID: 7, TID: 8, Space: "host", Level: "allocator", Action: "free", Address: 64, Bytes: &bytes, Weight: 1},
			{TSNS: 1e15 + 9e6, PID: 7, TID: 8, Space: "host", Level: "allocator", Action: "free", Address: 4096, Bytes: &bytes, Weight: 1},
		}}),
		d.Write(&event.Batch{IO: []event.IO{
			{TSNS: 1e15, EndNS: 1e15 + 2e6, PID: 7, TID: 8, Operation: event.IORead, Kind: event.IOFile, FileSystem: "nfs4", Mount: "/data",
				Calls: 2, Bytes: 4096, DurationNS: 2e6},
			{TSNS: 1e15 + 1e9, EndNS: 1e15 + 2e9, PID: 9, TID: 9, Operation: event.IORead, Kind: event.IOFile, FileSystem: "nfs4", Mount: "/data",
				Calls: 1, Bytes: 4, DurationNS: 1e6},
			{TSNS: 1e15, EndNS: 1e15 + 2e6, PID: 7, TID: 8, Operation: event.IOWrite, Kind: event.IOSocket, FileSystem: "sockfs", Calls: 2,
				Bytes: 96, DurationNS: 1e3},
		}}),
		d.Write(&event.Batch{Warnings: []event.Warning{{TSNS: 1e15, Kind: "lost", Source: "ring", Count: 3,
			Detail: "the ring buffer was full"}}}))
}

func TestARecordingOfTheCPUIsUseful(t *testing.T) {
	r := built(t, made(t, loop))
	if r.Steps == nil || r.Steps.Count != 30 || r.Steps.MeanMS != 20 || r.Steps.StddevMS != 0 {
		t.Fatalf("%+v", r.Steps)
	}
	want := map[string]float64{timeline.Loading: 2, timeline.Forward: 5, timeline.Backward: 8, timeline.Optimizer: 3, timeline.OtherPhase: 2}
	sum := 0.0
	for _, p := range r.Phases {
		// The last step has no period: what follows its last anchor is not its.
		if d := p.MSPerStep - want[p.Phase]; d > 0.1 || d < -0.1 {
			t.Errorf("%+v, want %f ms", p, want[p.Phase])
		}
		sum += p.Percent
	}
	if len(r.Phases) != len(want) || sum < 99.9 || sum > 100.1 {
		t.Errorf("%f %% in %+v", sum, r.Phases)
	}
	if o := r.Operators[0]; o.Name != "aten::mm" || o.Calls != 60 || o.TotalMS != 270 || o.SelfMS != 270 || o.DeviceMS != nil {
		t.Errorf("%+v", o)
	}
	if l := r.Lines[0]; l.File != "/home/me/train.py" || l.Line != 42 || l.CPUMS == nil || *l.CPUMS != 5 || l.HostMS == nil ||
		*l.HostMS != 150 {
		t.Errorf("%+v", l)
	}
	// The block that was freed without having been seen was there from the beginning.
	if m := r.Memory[0]; m.PeakBytes != 2<<20 || len(m.Owners) != 2 || m.Owners[1].Bytes != 1<<20 ||
		m.Owners[0].Name != "(before the recording)" || m.Owners[1].Name != "/home/me/train.py:42 (forward)" {
		t.Errorf("%+v", m)
	}
	if x := r.IO[0]; len(r.IO) != 2 || x.Operation != "read" || *x.Mount != "/data" || x.Calls != 3 || x.Bytes != 4100 || x.MS != 3 ||
		x.WaitedMS != nil || x.Threads != 2 {
		t.Errorf("%+v", r.IO)
	}
	if len(r.Warnings) == 0 || !strings.Contains(r.Warnings[0], "ring buffer was full") {
		t.Errorf("%q", r.Warnings)
	}
	if r.Device != nil || !strings.Contains(strings.Join(r.Untold, ";"), "what the device did") {
		t.Errorf("%+v %q", r.Device, r.Untold)
	}
}

// TestOfManyWarningsOfAKindTheRestIsCounted: none is left out in silence, and a loss
// stands before them.
func TestOfManyWarningsOfAKindTheRestIsCounted(t *testing.T) {
	r := built(t, made(t, func(d *output.Dataset) error {
		err := d.Write(&event.Batch{Warnings: []event.Warning{{TSNS: 1e15, Kind: "lost", Source: "ring", Count: 1,
			Detail: "the ring buffer was full"}}})
		for n := range 30 {
			err = errors.Join(err, d.Write(&event.Batch{Warnings: []event.Warning{{TSNS: 1e15, Kind: "late", Source: fmt.Sprintf("/l/%d.so", n),
				Count: int64(100 - n), Detail: "late"}}}))
		}
		return err
	}))
	var late int64
	for i, w := range r.Warnings {
		if strings.Contains(w, "ring buffer") && i > 0 {
			t.Errorf("the loss is told as number %d", i)
		}
		if found := regexp.MustCompile(`(\d+) (probes\)|late:)`).FindStringSubmatch(w); found != nil {
			n, err := strconv.ParseInt(found[1], 10, 64)
			if err != nil {
				t.Errorf("%q: %v", w, err)
			}
			late += n
		}
	}
	if late != 30*100-29*30/2 || len(r.Warnings) > 10 || !strings.Contains(strings.Join(r.Warnings, "\n"), "25 more sources") {
		t.Errorf("%d told of: %q", late, r.Warnings)
	}
}

// TestLossesStandBeforeWhatTheyCouldSpoil in what people read.
func TestLossesStandBeforeWhatTheyCouldSpoil(t *testing.T) {
	r := built(t, made(t, loop))
	var text bytes.Buffer
	if err := r.Write(&text, "text", Style{Top: 5}); err != nil {
		t.Fatal(err)
	}
	verdict, lost, steps := strings.Index(text.String(), r.Verdict), strings.Index(text.String(), "ring buffer was full"),
		strings.Index(text.String(), "30 steps")
	if verdict != 0 || lost < 0 || steps < lost {
		t.Errorf("%d %d %d\n%s", verdict, lost, steps, text.String())
	}
}

// TestAReportBeginsWithTheCPUsThatAThreadDidNotHave where that is more than anything
// that could be mended.
func TestAReportBeginsWithTheCPUsThatAThreadDidNotHave(t *testing.T) {
	headroom := 20.0
	mend := []findings.Finding{{Rule: "layout", Severity: findings.High, HeadroomPercent: &headroom, Name: "aten::clone",
		Advice: "Copy less."}}
	for percent, first := range map[float64]bool{5: false, 15: false, 40: true} {
		b := builder{samples: 1, report: &Report{Findings: mend, Contention: &Contention{Percent: percent,
			who: "other processes kept 2.0 CPUs busy"}}}
		v := b.verdict()
		if strings.HasPrefix(v, "For 40 % of the steps' time") != first || !strings.Contains(v, "ending layout at aten::clone would shorten a "+
			"step by about 20 %") {
			t.Errorf("%g %%: %s", percent, v)
		}
	}
}

// TestAReportBeginsWithMemoryThatRanOut, also where nothing else was recorded; not with a
// driver's, which its caller knew how to help.
func TestAReportBeginsWithMemoryThatRanOut(t *testing.T) {
	for level, want := range map[string]string{
		"allocator": " asked for 8.00 GiB of host memory and there was no room",
		"kernel":    "The kernel killed pid 7",
		"driver":    "",
	} {
		shortage := func(d *output.Dataset) error {
			asked := int64(8 << 30)
			return d.Write(&event.Batch{Memory: []event.Memory{{TSNS: 15e14, PID: 7, TID: 8, Space: "host", Level: level,
				Action: event.ActionOutOfMemory, Bytes: &asked, Weight: 1}}})
		}
		alone := built(t, made(t, shortage))
		beside := built(t, made(t, func(d *output.Dataset) error { return errors.Join(loop(d), shortage(d)) }))
		for _, r := range []*Report{alone, beside} {
			if len(r.OutOfMemory) != 1 || !strings.Contains(r.Verdict, want) || strings.Contains(r.Verdict, "memory") != (want != "") {
				t.Errorf("%s: %+v, %s", level, r.OutOfMemory, r.Verdict)
			}
			var text bytes.Buffer
			if err := r.Write(&text, "text", Style{}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text.String(), "out of memory: ") {
				t.Errorf("%s: the memory section does not tell of it:\n%s", level, text.String())
			}
		}
		if want != "" && !strings.Contains(beside.Verdict, "Before that: ") {
			t.Errorf("%s: %s", level, beside.Verdict)
		}
	}
}

// Of a job that hung before the recording began no call was seen: the stacks tell.
func TestAReportBeginsWithAHang(t *testing.T) {
	const c10d = "/v/torch/distributed/distributed_c10d.py"
	framework := "torch"
	standing := func(since int64) func(*output.Dataset) error {
		return func(d *output.Dataset) error {
			all := event.OpenCalls{}
			for rank := range int32(3) {
				pid := 100 + rank
				frames := []event.Frame{{Kind: "python", Function: "all_reduce", File: c10d, Line: 1}, {Kind: "python", Function: "step",
					File: "/home/u/train.py", Line: 7}}
				if rank == 1 {
					frames = frames[1:]
				}
				err := errors.Join(d.Write(&event.Batch{Processes: []event.Process{{ID: int64(pid), PID: pid, Rank: &rank, Framework: &framework}}}),
					d.Write(&event.Batch{Stacks: []event.Stack{{ID: int64(pid), Frames: frames, Status: "complete"}}}))
				if err != nil {
					return err
				}
				stack := int64(pid)
				all.Threads = append(all.Threads, event.StillThread{SeenNS: 1e15 + 9e9, SinceNS: &since, PID: pid, TID: pid, StackID: &stack})
			}
			return d.Write(&event.Batch{OpenCalls: []event.OpenCalls{all}})
		}
	}
	const want = "The job hung when the recording ended: 2 wait in a collective whose begin was not recorded (all_reduce): its number is not known; rank 1 is in none."
	alone := built(t, made(t, standing(1e15)))
	if alone.Verdict != want {
		t.Errorf("%s", alone.Verdict)
	}
	beside := built(t, made(t, func(d *output.Dataset) error { return errors.Join(loop(d), standing(1e15)(d)) }))
	if !strings.HasPrefix(beside.Verdict, want+" Before that: ") {
		t.Errorf("%s", beside.Verdict)
	}
	var text bytes.Buffer
	if err := alone.Write(&text, "text", Style{}); err != nil || !strings.Contains(text.String(), "ebpfprof fleet hang") {
		t.Errorf("%v\n%s", err, text.String())
	}
	if short := built(t, made(t, standing(1e15+8e9))); short.Hang != nil || strings.Contains(short.Verdict, "hung") {
		t.Errorf("of what has stood for a second: %s", short.Verdict)
	}
}

func TestLongStepsWaitLonger(t *testing.T) {
	for mean, want := range map[float64]float64{0: leastHang, 20: leastHang, 1500: 7.5} {
		if got := (&Report{Steps: &Steps{MeanMS: mean}}).leastWait(); got != want {
			t.Errorf("steps of %g ms: a wait of %g s is a hang, want %g", mean, got, want)
		}
	}
	if got := (&Report{}).leastWait(); got != leastHang {
		t.Errorf("without steps: %g", got)
	}
}

// TestMachinesFindTheMembersThatAreStable also where there is nothing.
func TestMachinesFindTheMembersThatAreStable(t *testing.T) {
	for name, fill := range map[string]func(*output.Dataset) error{"nothing": func(*output.Dataset) error { return nil }, "a loop": loop} {
		var text bytes.Buffer
		if err := built(t, made(t, fill)).Write(&text, "json", Style{}); err != nil {
			t.Fatal(err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(text.Bytes(), &members); err != nil {
			t.Fatal(err)
		}
		for _, member := range []string{"verdict", "steps", "phases", "device", "operators", "kernels", "findings", "warnings", "rows",
			"cannot_be_told"} {
			if _, ok := members[member]; !ok {
				t.Errorf("%s: no %s", name, member)
			}
		}
		for _, list := range []string{"phases", "operators", "kernels", "findings", "warnings", "lines", "memory", "out_of_memory",
			"cannot_be_told"} {
			if members[list][0] != '[' {
				t.Errorf("%s: %s is %s, and no list", name, list, members[list])
			}
		}
	}
}

func TestAPartOfTheTimeAndOfTheRanks(t *testing.T) {
	from, to, rank := 100.0, 200.0, 5
	r, err := Build(t.Context(), made(t, loop), Options{FromMS: &from, ToMS: &to})
	if err != nil {
		t.Fatal(err)
	}
	if r.Operators[0].Calls != 10 {
		t.Errorf("%+v", r.Operators[0])
	}
	if _, err := Build(t.Context(), made(t, loop), Options{Rank: &rank}); err == nil {
		t.Error("a rank that is not there has a report")
	}
}

// TestTheReportHasThePeakOfMemory, also where a recording in slices has frees of
// blocks that it did not see, and addresses whose frees it did not see.
func TestTheReportHasThePeakOfMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	db := made(t, func(d *output.Dataset) error {
		rows := []event.Memory{}
		for i := range int64(2000) {
			bytes, action := 1000*(1+r.Int64N(50)), "alloc"
			if r.IntN(2) == 0 {
				action = "free"
			}
			rows = append(rows, event.Memory{TSNS: 1e15 + 1e6*i, PID: 7, TID: 8, Space: "host", Level: "allocator", Action: action,
				Address: 64 * (1 + r.Int64N(100)), Bytes: &bytes, Weight: 4})
		}
		return d.Write(&event.Batch{Memory: rows})
	})
	m, err := analysis.Load(t.Context(), db.Root(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	a, got := m.Arenas[0], built(t, db).Memory[0]
	if got.PeakBytes != a.PeakBytes || a.PeakBytes == 0 || !got.Estimated || got.Owners[0].Bytes != a.Holders.ByLine[0].Bytes {
		t.Errorf("report %+v; memory %d, %+v", got, a.PeakBytes, a.Holders.ByLine)
	}
}

// TestManyRowsOfASortAreOneSentence: slices, first calls without a probe and what is not
// whole; a count that the detail has is not said twice.
func TestManyRowsOfASortAreOneSentence(t *testing.T) {
	r := built(t, made(t, func(d *output.Dataset) (err error) {
		for n := range 3 {
			begin := int64(1e15 + n*1e9)
			err = errors.Join(err,
				d.Write(&event.Batch{Warnings: []event.Warning{{TSNS: 1e15, Kind: "slice", Source: "detail", Count: 79,
					Detail: "79 probes recorded 200.0 of 1000.0 ms"}}}),
				d.Write(&event.Batch{Slices: []event.Slice{{ID: int64(n + 1), PID: 100, Group: "autograd", BeginNS: begin, EndNS: begin + 2e8,
					FromNS: begin, ToNS: begin + 1e9, Phase: "other", Recorded: 1, Represented: 5}}}),
				d.Write(&event.Batch{Slices: []event.Slice{{ID: int64(n + 21), PID: 100, Group: "autograd", BeginNS: begin, EndNS: begin + 2e8,
					FromNS: begin, ToNS: begin + 9e8, Phase: "training", Recorded: 1, Represented: 5}}}),
				d.Write(&event.Batch{Slices: []event.Slice{{ID: int64(n + 11), PID: 100, Group: "memory", BeginNS: begin, EndNS: begin + 2e8,
					FromNS: begin, ToNS: begin + 1e9, Recorded: 1, Represented: 5}}}),
				d.Write(&event.Batch{Warnings: []event.Warning{{TSNS: 1e15, Kind: "late", Source: "/l/a.so", Count: 2,
					Detail: fmt.Sprintf("the job has just begun to use these, and their first calls are not recorded: aten::f%d", n)}}}),
				d.Write(&event.Batch{Warnings: []event.Warning{{TSNS: 1e15, Kind: "incomplete", Source: fmt.Sprint("reason", n),
					Count: int64(n + 1)}}}))
		}
		return errors.Join(err, d.Write(&event.Batch{Warnings: []event.Warning{{TSNS: 1e15, Kind: "import", Source: "t.json", Count: 198,
			Detail: "198 rows of t.json are not imported"}}}))
	}))
	got := strings.Join(r.Warnings, "\n")
	for _, want := range []string{
		"operators and their like were recorded in 3 slices, 600.0 ms of 3000 ms",
		"a.so: the job began to use some functions before they had probes: their first calls are not recorded (6 probes)",
		"6 stacks, frames and rows are not whole: 3 reason2, 2 reason1, 1 reason0", "198 rows of t.json are not imported",
	} {
		if !strings.Contains("\n"+got, "\n"+want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "79 probes") || strings.Count(got, "198") != 1 {
		t.Error(got)
	}
}
