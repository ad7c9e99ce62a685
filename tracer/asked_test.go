package tracer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/asked"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func TestWhatAUserAsksForIsRecordedWithItsArguments(t *testing.T) {
	needKernel(t)
	directory := filepath.Join("..", "testdata", "stubs")
	if out, err := exec.Command("make", "-s", "-C", directory, "build/work").CombinedOutput(); err != nil {
		t.Fatalf("building the job: %v\n%s", err, out)
	}
	job := exec.Command(filepath.Join(directory, "build", "work"))
	stdin, _ := job.StdinPipe()
	stdout, _ := job.StdoutPipe()
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	defer job.Process.Kill()
	says := bufio.NewScanner(stdout)
	says.Scan() // ready
	group, err := asked.Group(
		[]string{"libwork.so:work_step(n:int,text:str,size:size_t,at:*long)->int", "libwork.so:work::Pool::run(_,n:int)", "libwork.so:work_stop"},
		[]string{"work:step(n:int,text:str)", "work:stp"})
	if err != nil {
		t.Fatal(err)
	}
	sink := &recordingSink{}
	session, err := Open(t.Context(), Options{PIDs: []int{job.Process.Pid}, BufferBytes: 4 << 20, Budget: Unlimited, Asked: group}, sink)
	if err != nil {
		t.Fatal(err)
	}
	closed := sync.OnceFunc(session.Close)
	t.Cleanup(closed)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- session.Run(ctx) }()
	io.WriteString(stdin, "go\n")
	if says.Scan(); says.Text() != "100 calls, 100 seen" {
		t.Errorf("while it was recorded, the job says %q: the kernel does not count who looks", says.Text())
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	closed()
	io.WriteString(stdin, "go\n")
	if says.Scan(); says.Text() != "200 calls, 100 seen" {
		t.Errorf("after the recording, the job says %q: the count of who looks was not lowered again", says.Text())
	}
	checkAsked(t, sink.spans)
	said := fmt.Sprint(sink.warnings)
	for _, want := range []string{"libwork.so.1 has no function work_stop; the nearest names: work_step",
		"no file of the job has the USDT probe work:stp; the nearest names: work:step"} {
		if !strings.Contains(said, want) {
			t.Errorf("no warning says %q: %s", want, said)
		}
	}
}

// checkAsked compares the rows with what the job calls.
func checkAsked(t *testing.T, spans []event.Span) {
	t.Helper()
	var steps, seen, runs []event.Span
	for _, s := range spans {
		switch s.Call.Name {
		case "work_step":
			steps = append(steps, s)
		case "work:step":
			seen = append(seen, s)
		case "work::Pool::run":
			runs = append(runs, s)
		}
		if s.Call.Layer != "user" || s.Detail == nil {
			t.Fatalf("%+v %+v", s.Call, s)
		}
	}
	if len(steps) != 100 || len(seen) != 100 || len(runs) != 1 || runs[0].Detail.Arguments != `{"n": 7}` {
		t.Fatalf("%d calls, %d of the USDT probe, %d of the method, want 100, 100 and 1: %+v", len(steps), len(seen), len(runs), runs)
	}
	parents := map[int64]int{}
	for i, s := range steps {
		n, result, text := i, 2*i, `"odd \"name\""`
		if i%2 == 1 {
			n, result = -i, i
		}
		if i%3 == 0 {
			text = "null"
		}
		want := fmt.Sprintf(`{"n": %d, "text": %s, "size": 1099511627776, "at": 4242, "return": %d}`, n, text, result)
		if s.Detail.Arguments != want || s.DurationNS <= 0 || s.Status != event.StatusOK {
			t.Errorf("call %d: %s in %d ns, %s, want %s", i, s.Detail.Arguments, s.DurationNS, s.Status, want)
		}
		parents[s.ID] = i
		want = fmt.Sprintf(`{"n": %d, "text": %s, "arg3": 7, "arg4": 4242}`, n, text)
		if p := seen[i]; p.Detail.Arguments != want || p.End != event.EndInstant || p.DurationNS != 0 {
			t.Errorf("the USDT probe in call %d: %s, %s, want %s", i, p.Detail.Arguments, p.End, want)
		}
	}
	for i, p := range seen {
		if call, ok := parents[p.ParentID]; !ok || call != i {
			t.Errorf("the USDT probe of call %d is in call %d", i, call)
		}
	}
}
