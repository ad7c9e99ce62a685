package explain

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// TestAWorkerOfAPoolDoesNotSetThePace: it works when it is handed a task. A process that a job starts to train in, or a
// rank, does set it, and so does a worker that is recorded without its parent.
func TestAWorkerOfAPoolDoesNotSetThePace(t *testing.T) {
	stack := func(id int64, function, path string) event.Stack {
		return event.Stack{ID: id, Status: event.StackComplete, Frames: []event.Frame{
			{Kind: symbolize.Python, Function: "score", File: "/home/me/fit.py", Line: 9},
			{Kind: symbolize.Python, Function: function, File: path, Line: 120},
		}}
	}
	const lib = "/usr/lib/python3.11/"
	for _, c := range []struct {
		name           string
		function, file string
		parent         int32
		rank           *int32
		want           bool
	}{
		{"a pool of processes", "worker", lib + "multiprocessing/pool.py", 100, nil, true},
		{"an executor", "_process_worker", lib + "concurrent/futures/process.py", 100, nil, true},
		{"a spawned trainer", "_bootstrap", lib + "multiprocessing/process.py", 100, nil, false},
		{"the job's own function of that name", "worker", "/home/me/pool.py", 100, nil, false},
		{"a rank", "worker", lib + "multiprocessing/pool.py", 100, new(int32), false},
		{"recorded without its parent", "worker", lib + "multiprocessing/pool.py", 7, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			work, other := stack(1, c.function, c.file), stack(2, "main", "/home/me/fit.py")
			samples := []event.Sample{
				{TSNS: 1e18 + 1, PID: 200, TID: 200, State: event.OnCPU, WeightNS: 6e9, StackID: &work.ID},
				{TSNS: 1e18 + 7e9, PID: 200, TID: 200, State: event.OnCPU, WeightNS: 3e9, StackID: &other.ID},
			}
			r := counted(t, made(t, []seen{training}), &event.Batch{Stacks: []event.Stack{work, other}, Samples: samples})
			r.Processes = map[int32]*Process{100: {PID: 100}, 200: {PID: 200, Parent: c.parent, Rank: c.rank, recordedChild: c.parent == 100}}
			if got := r.poolWorker(200); got != c.want {
				t.Errorf("a worker of a pool: %v", got)
			}
		})
	}
}

// TestAProcessWithoutItsMainThreadGoesOn: where the main thread is not seen in the second half the busiest other one sets
// the pace; one that stands, is seen at the end, or has done much of the work keeps it.
func TestAProcessWithoutItsMainThreadGoesOn(t *testing.T) {
	sample := func(at int64, tid int32, state string, weight int64) event.Sample {
		return event.Sample{TSNS: at, PID: 100, TID: tid, State: state, WeightNS: weight}
	}
	for _, c := range []struct {
		name    string
		samples []event.Sample
		still   []standing
		want    int32
	}{
		{"it has ended", []event.Sample{sample(1e18, 102, event.OnCPU, 2e9), sample(1e18, 103, event.OnCPU, 1e9)}, nil, 102},
		{"it ends", []event.Sample{sample(1e18, 100, event.OnCPU, 1e7), sample(1e18, 102, event.OnCPU, 9e9)}, nil, 102},
		{"it worked first", []event.Sample{sample(1e18, 100, event.OnCPU, 4e9), sample(1e18, 102, event.OnCPU, 9e9)}, nil, 100},
		{"it waits", []event.Sample{sample(1e18+18e9, 100, event.OffCPU, 1e6), sample(1e18, 102, event.OnCPU, 2e9)}, nil, 100},
		{"it stands", []event.Sample{sample(1e18, 102, event.OnCPU, 2e9)}, []standing{{Thread: Thread{100, 100}}}, 100},
		{"nobody runs", []event.Sample{sample(1e18, 102, event.OffCPU, 2e9)}, nil, 100},
	} {
		r := counted(t, made(t, []seen{training}), &event.Batch{Samples: c.samples})
		r.Processes, r.still = map[int32]*Process{100: {PID: 100}}, c.still
		if !r.choosePace() || r.Pace != (Thread{100, c.want}) {
			t.Errorf("%s: %v, want thread %d", c.name, r.Pace, c.want)
		}
	}
}
