package explain

import (
	"context"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/analysis"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/holders"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/source"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
	"github.com/ebpfprof/ebpfprof/output"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// counted gives a recording a dataset with what samples do not show: counters, spans, I/O.
func counted(t *testing.T, r *Recording, b *event.Batch) *Recording {
	t.Helper()
	d, err := output.Create(filepath.Join(t.TempDir(), "d"), output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, do := range []func() error{func() error { return d.Session(event.Recording{ID: "s", StartedNS: r.From, EndedNS: &r.Until}) },
		func() error { return d.Write(b) }, d.Close} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	if r.db, err = dataset.Open(d.Dir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.db.Close() })
	r.ctx = context.Background()
	return r
}

// gauge are readings of a counter over the recording, one in each of as many parts as there are values.
func gauge(scope, name string, values ...float64) (all []event.Counter) {
	source := "memory"
	if scope != "" {
		source = "cgroup"
	}
	for i, v := range values {
		all = append(all, event.Counter{TSNS: 1e18 + int64(2*i+1)*wallMS*1e6/int64(2*len(values)), Source: source, Scope: scope, Name: name,
			Kind: event.Gauge, Unit: "bytes", Value: v})
	}
	return all
}

func counters(all ...[]event.Counter) *event.Batch {
	b := &event.Batch{}
	for _, c := range all {
		b.Counters = append(b.Counters, c...)
	}
	return b
}

// deltas are counts of an interval that ends in the recording, on a machine with so many CPUs.
func deltas(cpus int, of map[string]float64) (all []event.Counter) {
	for name, v := range of {
		scope, source := "", "cpu"
		if regexp.MustCompile("^cgroup").MatchString(name) {
			scope, source = "/job", "cgroup"
		}
		all = append(all, event.Counter{TSNS: 1e18 + wallMS*1e6/2, Source: source, Scope: scope, Name: name, Kind: event.Delta, Unit: "ns",
			Value: v})
	}
	for cpu := range cpus {
		all = append(all, event.Counter{TSNS: 1e18 + wallMS*1e6/2, Source: "cpu", Device: []string{"cpu0", "cpu1", "cpu2", "cpu3"}[cpu],
			Name: "cpu_idle", Kind: event.Delta, Unit: "ns"})
	}
	return all
}

// ranOn are samples of the recording on so many CPUs: what queries of them see.
func ranOn(cpus int, ms float64) (all []event.Sample) {
	for cpu := range cpus {
		all = append(all, event.Sample{TSNS: 1e18 + 1, PID: 100, TID: 100, CPU: int32(cpu), State: event.OnCPU,
			WeightNS: int64(ms * 1e6 / float64(cpus))})
	}
	return all
}

// operators are calls of an operator of the job.
func operators(call event.Call, n int, each int64, change func(i int, s *event.Span)) (all []event.Span) {
	for i := range n {
		s := event.Span{ID: int64(i + 1), StartNS: 1e18 + int64(i)*1e6, DurationNS: each, PID: 100, TID: 100, Call: &call, Weight: 1,
			SequenceNumber: -1}
		if change != nil {
			change(i, &s)
		}
		all = append(all, s)
	}
	return all
}

// looped gives a recording steps of 20 ms.
func looped(r *Recording) *Recording {
	r.steps = kindsOf(periods(1000, 0, 20e6, 0))
	r.Loop = &timeline.Thread{PID: 100, TID: 100}
	for _, s := range r.steps.all {
		r.Loop.Steps = append(r.Loop.Steps, timeline.Step{Step: steps.Step{Begin: s.Begin, End: s.End, Period: s.Period}})
	}
	return r
}

// training is most of the time of a job that trains; preempted, of a thread that waits for a CPU.
var (
	training  = seen{9000, "on", script + "; op:aten::mm"}
	preempted = seen{8000, "preempted", script + "; op:aten::mm"}
)

func TestKindsThatReadCountersFireAndTheirNearMissesDoNot(t *testing.T) {
	const gib = 1 << 30
	rising := func(from, by float64) (v []float64) {
		for i := range 10 {
			v = append(v, from+by*float64(i))
		}
		return v
	}
	clear := "; native:memset@libc.so.6; kernel:clear_page_erms@[kernel]"
	reclaim := "; native:memset@libc.so.6; kernel:shrink_node@[kernel]"
	openMP := seen{3000, "on", script + "; op:aten::mm; native:do_wait@libgomp.so.1"}
	team := func(n int32) (all []other) {
		for i := range n {
			all = append(all, other{Thread{100, 101 + i}, []seen{{6000, "on", "native:do_wait@libgomp.so.1"}}})
		}
		return all
	}
	double, single := `["double","double"]`, `["float","float"]`
	typed := func(types string) *event.Batch {
		return &event.Batch{Spans: operators(event.Call{Layer: "op", Name: "aten::mm"}, 20, 1e6, func(_ int, s *event.Span) {
			s.Detail = &event.Detail{Shape: &event.Shape{Dims: "[[8,8],[8,8]]", Types: types}}
		})}
	}
	inCollective := func(name string) []seen {
		return []seen{{8000, "futex", "main@/home/me/fit.py:16; all_reduce@" + site + "torch/distributed/distributed_c10d.py:900"}, training}
	}
	reduce := func(n int, size int64) *event.Batch {
		return &event.Batch{Spans: operators(event.Call{Layer: "collective", Category: "collective", Name: "all_reduce", Runtime: "gloo"}, n, 1e4,
			func(_ int, s *event.Span) { s.Detail = &event.Detail{Bytes: &size} })}
	}
	nodes := func(runs int) *event.Batch {
		return &event.Batch{Spans: operators(event.Call{Layer: "autograd", Category: "node", Name: "MmBackward0"}, 60, 1e6,
			func(i int, s *event.Span) { s.SequenceNumber = int64(i / runs) })}
	}
	backward := []seen{{12000, "on", script + "; backward@" + site + "torch/_tensor.py:500; " +
		"native:torch::autograd::Engine::execute@libtorch_cpu.so"}, {6000, "on", script + "; op:aten::mm"}}
	for _, c := range []struct {
		name, kind string
		fires      *Recording
		with       *event.Batch
		want       string
		misses     *Recording
		without    *event.Batch
	}{
		{"nothing moves", "nothing_moves", standingAt(made(t, nil)), &event.Batch{},
			`Nothing moves: the loader's worker stands at Texts\.__getitem__ \(fit\.py:13\), waiting for a lock.*inherits it locked`,
			standingAt(made(t, nil)), &event.Batch{Samples: []event.Sample{{TSNS: 1e18 + wallMS*1e6 - 2e9, PID: 200, TID: 200, State: event.OnCPU,
				WeightNS: 1e9}}}},
		{"an idle server", "nothing_moves", serving(made(t, nil), "poll"), &event.Batch{}, `The server waits for requests: for the last \d+ s`,
			standingAt(made(t, nil)), &event.Batch{}},
		{"an idle server in accept", "nothing_moves", serving(made(t, nil), "accept4"), &event.Batch{}, `The server waits for requests`,
			serving(made(t, nil), "futex"), &event.Batch{}},
		{"an idle server that looks up now and then", "nothing_moves",
			made(t, []seen{{19900, "poll", "<module>@/home/me/serve.py:9; serve_forever@/usr/lib/python3.11/socketserver.py:230; " +
				"_PollLikeSelector.select@/usr/lib/python3.11/selectors.py:415"}}),
			&event.Batch{}, `The server waits for requests`,
			made(t, []seen{{16000, "poll", "<module>@/home/me/serve.py:9; serve_forever@/usr/lib/python3.11/socketserver.py:230; " +
				"_PollLikeSelector.select@/usr/lib/python3.11/selectors.py:415"},
				{3900, "futex", "<module>@/home/me/serve.py:9; serve_forever@/usr/lib/python3.11/socketserver.py:230; do_GET@/home/me/serve.py:4"}}),
			&event.Batch{}},
		{"a client that waits for an answer in an event loop", "nothing_moves", made(t, []seen{{19900, "epoll_wait",
			"<module>@/home/me/ask.py:9; run_until_complete@/usr/lib/python3.11/asyncio/base_events.py:640; " +
				"select@/usr/lib/python3.11/selectors.py:468"}}),
			&event.Batch{}, `The event loop waits for requests or answers: for the last \d+ s nothing`, standingAt(made(t, nil)), &event.Batch{}},
		{"a stopped process", "nothing_moves", halted(made(t, nil), event.ThreadStopped), &event.Batch{},
			`process 100 is stopped by a signal, so that nothing in it runs\. .*kill -CONT 100`,
			standingAt(made(t, nil)), &event.Batch{}},
		{"a process in a debugger", "nothing_moves", halted(made(t, nil), event.ThreadTraced), &event.Batch{},
			`process 100 is stopped by a debugger.*Continue it in the debugger`,
			halted(made(t, nil), event.ThreadSleeping), &event.Batch{}},
		{"memory ran out", "memory", withShortage(made(t, []seen{training})), &event.Batch{}, `(?i)memory.*fit\.py:9`,
			made(t, []seen{training}), &event.Batch{}},
		{"tensors are kept", "memory", leaking(looped(made(t, []seen{training})), "leak"),
			counters(gauge("", "memory_anonymous", rising(gib, 25e6)...), gauge("", "memory_available", 4*gib)),
			`grows by 256 KiB a step.*fit\.py:9.*At this rate the machine's memory is full in \d+ minutes`,
			leaking(looped(made(t, []seen{training})), "growth"), counters(gauge("", "memory_available", 4*gib))},
		{"the machine's memory grows", "memory", made(t, []seen{training, {400, "on", script + "; keep@/home/me/fit.py:9" + clear}}),
			counters(gauge("", "memory_anonymous", rising(gib, 1e8)...), gauge("", "memory_available", 40*gib)),
			`The machine's memory.*touched most at keep \(fit\.py:9\)`,
			made(t, []seen{training, {400, "on", script + "; keep@/home/me/fit.py:9" + clear}}),
			counters(gauge("", "memory_anonymous", append(rising(gib, 1e8), gib)...), gauge("", "memory_available", 40*gib))},
		{"the kernel reclaims memory", "memory", made(t, []seen{training, {4000, "on", script + "; read@/home/me/fit.py:9" + reclaim}}),
			counters(gauge("/job", "cgroup_memory_limit", 2*gib), gauge("/job", "cgroup_memory_anonymous", 1.9*gib)),
			`Memory is short: for 20 % of the time.*read \(fit\.py:9\).*1\.9 GiB of the control group's memory limit \(2\.0 GiB\).*memory\.max`,
			made(t, []seen{training, {400, "on", script + "; read@/home/me/fit.py:9" + reclaim}}), counters(gauge("/job", "cgroup_memory_limit",
				2*gib), gauge("/job", "cgroup_memory_anonymous", 1.2*gib))},
		{"memory comes back from swap", "memory", made(t, []seen{training, {4000, "fault", script + "; read@/home/me/fit.py:9"}}),
			&event.Batch{IO: []event.IO{{TSNS: 1e18, EndNS: 1e18 + 1, PID: 100, TID: 100, Operation: event.IOFault, Kind: "memory", Calls: 900}}},
			`Memory is short: for 20 % .*from swap`,
			made(t, []seen{training, {4000, "fault", script + "; read@/home/me/fit.py:9"}}),
			&event.Batch{IO: []event.IO{{TSNS: 1e18, EndNS: 1e18 + 1, PID: 100, TID: 100, Operation: event.IOFault, Kind: event.IOFile,
				Calls: 900}}}},
		{"memory is near its limit", "memory", made(t, []seen{training}), counters(gauge("/job", "cgroup_memory_limit", 2*gib),
			gauge("/job", "cgroup_memory_anonymous", 1.9*gib)), `95 % of the control group's memory limit`,
			made(t, []seen{training}), counters(gauge("/job", "cgroup_memory_limit", 2*gib), gauge("/job", "cgroup_memory_anonymous", 0.2*gib),
				gauge("/job", "cgroup_memory_file", 1.79*gib))},
		{"the disk is full", "memory", made(t, []seen{training}), &event.Batch{IO: []event.IO{{TSNS: 1e18, EndNS: 1e18 + 1, PID: 100, TID: 100,
			Operation: event.IOWrite, Kind: event.IOFile, Mount: "/data", Device: "8:1", Calls: 30, Failed: 12}}},
			`12 of 30 writes to files on /data failed.*df /data`,
			made(t, []seen{training}), &event.Batch{IO: []event.IO{{TSNS: 1e18, EndNS: 1e18 + 1, PID: 100, TID: 100, Operation: event.IOWrite,
				Kind: event.IOSocket, Device: "0:8", Calls: 30, Failed: 12}}}},
		{"a quota", "quota", made(t, []seen{training, preempted}), counters(deltas(2, map[string]float64{"cgroup_cpu_throttles": 150,
			"cgroup_cpu_throttled": 7e9})), `quota holds the job back for 35 %.*150 times.*cpu\.max`,
			made(t, []seen{training, preempted}), counters(deltas(2, map[string]float64{"cgroup_cpu_throttles": 0, "cgroup_cpu_throttled": 0}))},
		{"more threads than CPUs", "contention", made(t, []seen{training, preempted, openMP}, team(7)...), counters(deltas(2, nil)),
			`8 threads compete for 2 CPUs.*OMP_NUM_THREADS`,
			made(t, []seen{training, openMP}, team(1)...), counters(deltas(2, nil))},
		{"other processes have the CPUs", "contention", made(t, []seen{training, preempted}),
			withSamples(counters(deltas(2, map[string]float64{"cpu_user": 38e9})), ranOn(2, 9000)),
			`40 % .*other processes keep 1\.4 of 2 CPUs busy`,
			made(t, []seen{training, {700, "preempted", script}}), withSamples(counters(deltas(2, map[string]float64{"cpu_user": 38e9})),
				ranOn(2, 9000))},
		{"too few CPUs in its set", "contention", made(t, []seen{{10000, "on", script + "; op:aten::mm"}, preempted}, other{Thread{100, 102},
			[]seen{{9000, "on", script}}}), withSamples(counters(deltas(4, map[string]float64{"cpu_user": 20e9})), ranOn(1, 19000)),
			`2 busy threads run on 1 of the machine's 4 CPUs.*cpuset`,
			made(t, []seen{{10000, "on", script + "; op:aten::mm"}}, other{Thread{100, 102}, []seen{{9000, "on", script}}}),
			withSamples(counters(deltas(4, map[string]float64{"cpu_user": 20e9})), ranOn(1, 19000))},
		{"sleeping", "blocked",
			made(t, []seen{training, {7000, "clock_nanosleep", script + "; poll@/home/me/fit.py:9; native:pysleep@libpython3.11.so.1.0"}}),
			&event.Batch{}, `35 % .*sleeps at poll \(fit\.py:9\)`,
			made(t, []seen{training, {7000, "epoll_wait", "run_forever@/usr/lib/python3.11/asyncio/base_events.py:600; serve@/home/me/fit.py:2; " +
				"select@/usr/lib/python3.11/selectors.py:468"}}), &event.Batch{}},
		{"a request", "blocked", made(t, []seen{training, {7000, "recvfrom", script + "; features@/home/me/fit.py:9; get@" + site +
			"requests/api.py:73"}}), &event.Batch{}, `35 % .*network answer at features`,
			made(t, []seen{training, {700, "recvfrom", script + "; features@/home/me/fit.py:9; get@" + site + "requests/api.py:73"}}),
			&event.Batch{}},
		{"a queue that another thread fills", "blocked",
			made(t, []seen{training, {7000, "futex", script + "; Queue.get@/usr/lib/python3.11/queue.py:171; " +
				"Condition.wait@/usr/lib/python3.11/threading.py:327; native:lock_PyThread_acquire_lock@libpython3.11.so.1.0"}}), &event.Batch{},
			`35 % .*waits in Queue\.get at fit\.py:40, for another thread's work or for its own timeout: .*Make that work cheaper`,
			made(t, []seen{training,
				{7000, "futex", script + "; Recorder.add@/home/me/fit.py:9; native:lock_PyThread_acquire_lock@libpython3.11.so.1.0"}}), &event.Batch{}},
		{"a queue that another process fills", "blocked",
			made(t, []seen{training, {7000, "read", script + "; Queue.get@/usr/lib/python3.11/multiprocessing/queues.py:103; " +
				"Connection._recv@/usr/lib/python3.11/multiprocessing/connection.py:390"}},
				other{Thread{200, 200}, []seen{{9000, "on", "work@/home/me/fit.py:8"}}}), &event.Batch{},
			`35 % .*waits in Queue\.get at fit\.py:40 for what another process sends\. .*100 % of their CPU time at work \(fit\.py:8\)`,
			made(t, []seen{training, {7000, "read", script + "; load@/home/me/fit.py:8"}}), &event.Batch{}},
		{"large messages of another process", "blocked",
			made(t, []seen{training, {7000, "read", script + "; Queue.get@/usr/lib/python3.11/multiprocessing/queues.py:103; " +
				"Connection._recv@/usr/lib/python3.11/multiprocessing/connection.py:390"}},
				other{Thread{200, 200},
					[]seen{{9000, "on", "work@/home/me/fit.py:8; Connection._send@/usr/lib/python3.11/multiprocessing/connection.py:368"}}}),
			&event.Batch{}, `100 % .*serialise it and move it through pipes.*shared memory`,
			made(t, []seen{training, {7000, "read", script + "; Queue.get@/usr/lib/python3.11/multiprocessing/queues.py:103; " +
				"Connection._recv@/usr/lib/python3.11/multiprocessing/connection.py:390"}},
				other{Thread{200, 200}, []seen{{9000, "on", "work@/home/me/fit.py:8"}}}), &event.Batch{}},
		{"a lock on a file", "blocked", made(t, []seen{training, {7000, "flock", script + "; record@/home/me/fit.py:9"}}), &event.Batch{},
			`35 % .*waits at record \(fit\.py:9\) for a lock on a file \(flock\) that another process or thread holds`,
			made(t, []seen{training, {700, "flock", script + "; record@/home/me/fit.py:9"}}), &event.Batch{}},
		{"a database on another machine", "blocked", made(t, []seen{training, {7000, "poll", script + "; fetch@/home/me/fit.py:9; execute@" +
			site + "psycopg/cursor.py:97"}}), &event.Batch{}, `35 % .*waits for a database at fetch \(fit\.py:9\)`,
			made(t, []seen{training, {700, "poll", script + "; fetch@/home/me/fit.py:9; execute@" + site + "psycopg/cursor.py:97"}}),
			&event.Batch{}},
		{"a message of another process in Redis", "blocked", made(t, []seen{training, {7000, "recvfrom", script +
			"; take@/home/me/fit.py:9; ListCommands.blpop@" + site + "redis/commands/core.py:2600; " +
			"AbstractConnection.read_response@" + site + "redis/connection.py:512"}}),
			&event.Batch{}, `35 % .*waits in ListCommands\.blpop at take \(fit\.py:9\) for what another process sends`,
			made(t, []seen{training, {700, "recvfrom", script + "; take@/home/me/fit.py:9; ListCommands.blpop@" + site +
				"redis/commands/core.py:2600"}}), &event.Batch{}},
		{"many small collectives", "collective", looped(made(t, inCollective("all_reduce"))), reduce(60_000, 512),
			`60 small collectives a step of 512 bytes.*bucket`,
			looped(made(t, inCollective("all_reduce"))), reduce(1000, 50<<20)},
		{"double precision", "operator_mode", made(t, []seen{training}), typed(double), `45 % .*double precision \(float64\), most at fit\.py:40`,
			made(t, []seen{training}), typed(single)},
		{"a half type on a processor", "operator_mode", made(t, []seen{training}), typed(`["c10::BFloat16","c10::BFloat16"]`),
			`bfloat16 on a processor`,
			made(t, []seen{{700, "on", script + "; op:aten::mm"}}), typed(`["c10::BFloat16","c10::BFloat16"]`)},
		{"a retained graph", "other_rule", made(t, backward), nodes(12), `55 % .*backward passes at fit\.py:40.*retain_graph=True.*ran 12 times`,
			made(t, backward), nodes(1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := mostTelling(found(t, counted(t, c.fires, c.with), c.kind), c.kind)
			if e == nil {
				t.Fatal("it does not fire")
			}
			if text := e.sentence + " " + e.Evidence + " " + e.Advice; !regexp.MustCompile(c.want).MatchString(text) {
				t.Errorf("%q\ndoes not match %s", text, c.want)
			}
			if e := mostTelling(found(t, counted(t, c.misses, c.without), c.kind), c.kind); e != nil &&
				regexp.MustCompile(c.want).MatchString(e.sentence+" "+e.Evidence+" "+e.Advice) {
				t.Errorf("the near miss fires: %s", e.sentence)
			}
		})
	}
}

// mostTelling is the first explanation of a kind that a paragraph would show.
func mostTelling(all []Explanation, kind string) *Explanation {
	for i := range all {
		if e := &all[i]; e.Kind == kind && (e.class != ordinary || e.Explained >= leastShare) {
			return e
		}
	}
	return nil
}

func withSamples(b *event.Batch, samples []event.Sample) *event.Batch {
	b.Samples = samples
	return b
}

// standingAt gives a recording a training thread that waits for its loader, whose worker waits for a lock.
func standingAt(r *Recording) *Recording {
	frames := map[string]*Frame{}
	wait := stackOfNames(frames, script+"; __next__@"+site+"torch/utils/data/dataloader.py:700; _try_get_data@"+site+
		"torch/utils/data/dataloader.py:1200")
	locked := stackOfNames(frames, script+"; _worker_loop@"+site+"torch/utils/data/_utils/worker.py:300; "+
		"Texts.__getitem__@/home/me/fit.py:13; native:PyThread_acquire_lock_timed@libpython3.11.so.1.0")
	r.still = []standing{{Thread{100, 100}, "poll", "sleeping", r.From, r.Until, wait}, {Thread{200, 200}, "futex", "sleeping", r.From,
		r.Until, locked}}
	return r
}

// serving gives a recording a main thread of a server of the standard library that is in a system call.
func serving(r *Recording, syscall string) *Recording {
	stack := stackOfNames(map[string]*Frame{}, "<module>@/home/me/serve.py:9; serve_forever@/usr/lib/python3.11/socketserver.py:230")
	r.still = []standing{{Thread{100, 100}, syscall, "sleeping", r.From, r.Until, stack}}
	return r
}

// halted gives a recording a process whose main thread is in a state.
func halted(r *Recording, state string) *Recording {
	threads := []hang.Thread{{TIDs: []int64{100}, Main: true, State: state}}
	p := hang.Process{PID: 100, Threads: threads}
	switch state {
	case event.ThreadStopped:
		p.Stopped = hang.BySignal
	case event.ThreadTraced:
		p.Stopped = hang.ByDebugger
	}
	r.in.Standing = []hang.Process{p}
	return r
}

func withShortage(r *Recording) *Recording {
	r.in.OutOfMemory = &analysis.Shortage{Shortage: source.Shortage{PID: 100, Command: "python fit.py", Times: 1, Space: "host",
		Level: event.LevelKernel, Line: "/home/me/fit.py:9 (keep)"}}
	return r
}

// leaking gives a recording an arena in which a line's live bytes grow by 256 KiB a step.
func leaking(r *Recording, kind string) *Recording {
	arena := &analysis.Arena{Growth: []holders.Growth{{Line: "/home/me/fit.py:9 (step)", Kind: kind, BytesPerStep: 256 << 10,
		BytesPerStepLo: 255 << 10, Confidence: "high"}}}
	arena.Space = "host"
	r.in.Memory, r.in.StepMS = &analysis.Memory{Arenas: []*analysis.Arena{arena}}, 20
	return r
}
