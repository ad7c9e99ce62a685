package plan

import (
	"path/filepath"
	"reflect"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/symbolize/threadclock"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"golang.org/x/sys/unix"
)

// callees is an opened library of testdata/native, and a group of its functions.
func callees(t *testing.T) (e *elf.File, path string, groups []spec.Group) {
	t.Helper()
	path = filepath.Join("..", "..", "testdata", "native", "build", "libcallee-plain.so")
	e, err := elf.Open(path)
	if err != nil {
		t.Skip("make native builds it: ", err)
	}
	t.Cleanup(func() { e.Close() })
	group := spec.Group{Name: "native"}
	for _, symbol := range []string{"callee_plain", "callee_branchy", "callee_recursive", "callee_many", "callee_message"} {
		group.Functions = append(group.Functions, spec.Function{
			Library: "libcallee", Symbol: symbol, Exact: true, Action: spec.Span, End: spec.ExitSites,
		})
	}
	return e, path, []spec.Group{group}
}

// What else the process does takes no turns away from a file, however long it has to wait
// for the CPUs.
func TestAPlanningCountsTheTimeOfItsOwnThreadsAlone(t *testing.T) {
	var stop atomic.Bool
	defer stop.Store(true)
	for range 2 * runtime.GOMAXPROCS(0) {
		go func() {
			for !stop.Load() {
			}
		}()
	}
	const others = 50 * time.Millisecond
	planning := &meter{}
	eachParallel(8, runtime.GOMAXPROCS(0), planning, func(int) {
		// The CPU goes to the others, and this goroutine back to its thread.
		for began := processTime(t); processTime(t)-began < others; {
			time.Sleep(time.Millisecond)
		}
	})
	if used := planning.used(); used > others {
		t.Errorf("%s were counted of what others used, 8 × %s", used, others)
	}

	one := &meter{}
	eachParallel(1, 1, one, func(int) {
		for began := threadclock.Now(); threadclock.Now()-began < others; {
		}
	})
	if used := one.used(); used < others {
		t.Errorf("%s were counted of its own %s", used, others)
	}
}

func TestWhatHadNoTurnIsPlannedLater(t *testing.T) {
	e, path, groups := callees(t)
	whole := Library(e, path, groups)
	if whole.Rest != nil || len(whole.Probes) != len(groups[0].Functions) {
		t.Fatalf("%d probes in all, rest %v", len(whole.Probes), whole.Rest)
	}
	plan := Begin(e, path, groups, time.Nanosecond)
	if len(plan.Probes) != len(whole.Probes) || plan.Rest == nil {
		t.Fatalf("%d probes, rest %v: want %d, of which most have had no turn", len(plan.Probes), plan.Rest, len(whole.Probes))
	}
	unplanned := 0
	for i := range plan.Probes {
		if plan.Probes[i].EntryErr == errNoTurn {
			unplanned++
		}
	}
	if unplanned != plan.Rest.Len() {
		t.Errorf("%d probes have had no turn, the rest has %d", unplanned, plan.Rest.Len())
	}
	rounds := 0
	for rest := plan.Rest; rest != nil; rounds++ {
		later := rest.Next(time.Nanosecond)
		if which := plan.Take(later); len(which) != 1 {
			t.Errorf("round %d planned %d functions, want one", rounds, len(which))
		}
		rest = later.Rest
	}
	if rounds != unplanned {
		t.Errorf("%d rounds for %d functions", rounds, unplanned)
	}
	for i := range plan.Probes {
		got, want := plan.Probes[i], whole.Probes[i]
		if !reflect.DeepEqual(got.Entry, want.Entry) || !reflect.DeepEqual(got.Exits, want.Exits) || got.EntryErr != want.EntryErr ||
			got.code != want.code {
			t.Errorf("%s: planned later %+v, at once %+v", want.Symbol, got, want)
		}
	}
}

// processTime is the CPU time of this process, all of its threads.
func processTime(t *testing.T) time.Duration {
	t.Helper()
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &at); err != nil {
		t.Fatal(err)
	}
	return time.Duration(at.Nano())
}
