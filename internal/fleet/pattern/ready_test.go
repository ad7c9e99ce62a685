package pattern

import (
	"math"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// A worker of ten seconds whose training thread runs in the first half of each and waits in
// the second, while a thread of its library is ready and has no CPU for another part.
func machineOf(t *testing.T, ready func(second int64) (begin, ns int64), counters ...event.Counter) map[string]Pattern {
	t.Helper()
	c := New(100)
	rank, cgroup := int32(1), "/kubepods/pod7"
	c.Write(&event.Batch{Processes: []event.Process{{PID: 1, Rank: &rank, Cgroup: &cgroup}}})
	c.Write(&event.Batch{Spans: []event.Span{{PID: 1, TID: 1, Call: &event.Call{Layer: "autograd", Category: "backward",
		Name: "Engine::execute"}, DurationNS: 1}}})
	for i := range int64(10) {
		at := 5*second + i*second
		for look := range int64(50) {
			c.Write(&event.Batch{Samples: []event.Sample{sample(at+look*second/100, event.OnCPU, "", second/100, 1)}})
		}
		wait := sample(at+second/2, event.OffCPU, event.CauseSyscall, second/2, 2)
		begin, ns := ready(i)
		other := event.Sample{PID: 1, TID: 2, State: event.OffCPU, Cause: event.CauseSyscall, TSNS: at + begin - second/10,
			WeightNS: second/10 + ns, ReadyNS: ns}
		c.Write(&event.Batch{Samples: []event.Sample{wait, other}})
	}
	c.Write(&event.Batch{Counters: counters})
	found := map[string]Pattern{}
	for _, p := range c.Flush() {
		if p.Class == Host {
			found[p.Name] = p
		}
	}
	return found
}

func TestAThreadThatIsWaitedForAndHasNoCPUDelaysItsWorker(t *testing.T) {
	for _, c := range []struct {
		name       string
		ready      func(second int64) (begin, ns int64)
		beta, half float64
	}{
		{"while the training thread runs", func(int64) (int64, int64) { return second / 5, second / 5 }, 0, 0},
		{"while it waits", func(int64) (int64, int64) { return second * 6 / 10, second / 5 }, 0.2, 0},
		{"from before it waits on", func(int64) (int64, int64) { return second * 4 / 10, second / 5 }, 0.1, 0},
		// Shares of 0 and 0.4 in turn: a deviation of 0.21, 2.23 standard errors of ten.
		{"now and then", func(i int64) (int64, int64) { return second * 55 / 100, i % 2 * second * 2 / 5 }, 0.2, 2.26 * 0.2108 / math.Sqrt(10)},
	} {
		p := machineOf(t, c.ready)["preempted"]
		if math.Abs(p.Beta-c.beta) > 1e-6 || math.Abs((p.BetaHi-p.BetaLo)/2-c.half) > 1e-3 {
			t.Errorf("%s: %.4f from %.4f to %.4f, want %.4f ± %.4f", c.name, p.Beta, p.BetaLo, p.BetaHi, c.beta, c.half)
		}
	}
}

// The kernel counts what a quota took for the group: it is the worker's where the group is,
// or where the worker is alone in it.
func TestAQuotaIsThatOfTheWorkersGroup(t *testing.T) {
	idle := func(int64) (int64, int64) { return 0, 0 }
	one, two := int32(1), int32(2)
	at := func(pid *int32, scope string, value float64) (all []event.Counter) {
		for i := range int64(10) {
			all = append(all, event.Counter{TSNS: (5 + i) * second, PID: pid, Scope: scope, Name: "cgroup_cpu_throttled", Value: value})
		}
		return all
	}
	for _, c := range []struct {
		name     string
		counters []event.Counter
		known    bool
		beta     float64
	}{
		{"its path", at(nil, "/kubepods/pod7", 3e8), true, 0.3},
		{"its path, of version 1", at(nil, "cpu:/kubepods/pod7", 3e8), true, 0.3},
		{"it alone is in it", at(&one, "cpu:/elsewhere", 3e8), true, 0.3},
		{"another is", at(&two, "cpu:/kubepods/pod7", 3e8), false, 0},
		{"another group", at(nil, "/kubepods/pod8", 3e8), false, 0},
		{"nothing was taken", at(nil, "/kubepods/pod7", 0), true, 0},
		{"on several CPUs", at(nil, "/kubepods/pod7", 3e9), true, 1},
	} {
		p, known := machineOf(t, idle, c.counters...)["throttled"]
		if known != c.known || math.Abs(p.Beta-c.beta) > 1e-6 {
			t.Errorf("%s: %v, %v", c.name, known, p.Beta)
		}
	}
}

// In how many of its periods a quota was used up, and of how many CPUs it is, is told beside.
func TestThePeriodsOfAQuotaAreTold(t *testing.T) {
	idle := func(int64) (int64, int64) { return 0, 0 }
	var counters []event.Counter
	for i := range int64(10) {
		add := func(name string, value float64) {
			counters = append(counters, event.Counter{TSNS: (5 + i) * second, Scope: "cpu:/kubepods/pod7", Name: name, Value: value})
		}
		add("cgroup_cpu_periods", 10)
		add("cgroup_cpu_throttles", 8)
		add("cgroup_cpu_throttled", 5e8)
		add("cgroup_cpu_quota", 20)
	}
	all := machineOf(t, idle, counters...)
	throttles, cpus := all[QuotaThrottles], all[QuotaCPUs]
	if throttles.Basis != Read || throttles.Mu != 0.8 || throttles.Count != 100 || cpus.Mu != 0.2 ||
		math.Abs(all["throttled"].Beta-0.5) > 1e-6 {
		t.Errorf("%+v, %+v", throttles, cpus)
	}
	for _, p := range machineOf(t, idle, counters[2]) {
		if p.Basis == Read {
			t.Errorf("%s of a group whose periods are not known", p.Name)
		}
	}
}

// An operator is called by the function from which it took the longest, at the line there.
func TestAnOperatorsCallerIsTheOneThatItTookLongestFor(t *testing.T) {
	c := New(100)
	zeros := native("at::_ops::zeros::call")
	c.Write(&event.Batch{Stacks: []event.Stack{
		{ID: 1, Frames: []event.Frame{zeros, python("once", "/a.py", 3), python("main", "/a.py", 1)}},
		{ID: 2, Frames: []event.Frame{zeros, python("hoard", "/b.py", 9), python("main", "/a.py", 2)}},
	}})
	c.Write(&event.Batch{Spans: []event.Span{{PID: 1, TID: 1, Call: &event.Call{Layer: "autograd", Category: "backward",
		Name: "Engine::execute"}, DurationNS: 1}}})
	for i, stack := range []int64{1, 2, 2} {
		c.Write(&event.Batch{Samples: []event.Sample{sample(int64(i)*second, event.OnCPU, "", second/100, stack)}})
	}
	for _, p := range c.Flush() {
		if p.Name == "aten::zeros" && (p.Caller() != "hoard (b.py)" || p.File != "/b.py" || p.Line != 9) {
			t.Errorf("%s at %s:%d", p.Caller(), p.File, p.Line)
		} else if p.Name == "aten::zeros" {
			return
		}
	}
	t.Error("the operator has no pattern")
}
