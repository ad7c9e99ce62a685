package tracer

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// youthSink keeps what ended young as well.
type youthSink struct {
	livesSink
	mu    sync.Mutex
	short []event.ShortProcess
}

// Write implements event.Sink.
func (s *youthSink) Write(b *event.Batch) error {
	s.mu.Lock()
	s.short = append(s.short, b.ShortProcesses...)
	s.mu.Unlock()
	return s.livesSink.Write(b)
}

// A job that starts many short programs: each is counted once, by the name of what it executed
// or as a process that lived long enough to be looked at, and one that lives longer than
// the others is such a process.
func TestShortProcessesAreCountedByCommand(t *testing.T) {
	needKernel(t)
	const each = 120
	job := exec.Command("/bin/sh", "-c", `read go
i=0; while [ $i -lt 120 ]; do /bin/true; /bin/false; i=$((i+1)); done
(i=0; while [ $i -lt 10 ]; do :; i=$((i+1)); done)
sleep 3 & echo $!; wait; echo done; read go`)
	stdin, _ := job.StdinPipe()
	stdout, _ := job.StdoutPipe()
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { job.Process.Kill(); job.Wait() })
	lines := bufio.NewScanner(stdout)
	sink := &youthSink{livesSink: livesSink{processes: map[int64]Process{}}}
	recordInto(t, sink, Options{PIDs: []int{job.Process.Pid}, Follow: true, Frequency: 99}, func(_ *Session, stop func()) {
		io.WriteString(stdin, "go\n")
		for lines.Scan() && lines.Text() != "done" {
		}
		stop()
	})
	counted, failed := map[string]int64{}, map[string]int64{}
	for _, row := range sink.short {
		if int(row.ParentPID) != job.Process.Pid {
			t.Errorf("counted for pid %d, not for %d: %+v", row.ParentPID, job.Process.Pid, row)
		}
		// One that the kernel has not let go of at the end has its CPU time as of its last tick.
		if row.WallNS <= 0 || row.CPUNS < 0 || row.CPUNS == 0 && row.Count > 1 || row.EndNS <= row.TSNS {
			t.Errorf("impossible times: %+v", row)
		}
		counted[row.Command] += row.Count
		failed[row.Command] += row.Failed
		if row.Executed == (row.Command == "sh") {
			t.Errorf("executed is %v of %q", row.Executed, row.Command)
		}
	}
	processes := map[string]int64{}
	for _, p := range sink.processes {
		name := p.Command[strings.LastIndex(p.Command, "/")+1:]
		processes[name]++
	}
	for _, name := range []string{"true", "false"} {
		if n := counted[name] + processes[name]; n != each {
			t.Errorf("%s: %d counted and %d looked at, want %d in all", name, counted[name], processes[name], each)
		}
	}
	if failed["true"] != 0 || failed["false"] != counted["false"] || counted["false"] == 0 {
		t.Errorf("failed: %v of %v", failed, counted)
	}
	if processes["sleep 3"] != 1 {
		t.Errorf("the process that lives longer is not among those looked at: %v", processes)
	}
}
