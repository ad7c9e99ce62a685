package findings

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/rules"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

const (
	us = int64(1000)
	ms = 1000 * us
)

// made is a job of 40 steps: 100 µs loading, 4 ms forward, 4 ms backward, 1 ms
// optimizer, 100 µs between. extra is what each forward pass does besides.
func made(extra func(j *scripted.Job, step int)) *scripted.Job {
	j := scripted.New()
	for step := range 40 {
		j.Load(100 * us)
		j.Op("aten::mm", 4*ms).SequenceNumber = int64(2 * step)
		if extra != nil {
			extra(j, step)
		}
		j.Backward(10*us, func() { j.Node("MmBackward0", int64(2*step), 4*ms) })
		j.Optimize(1 * ms)
		j.Wait(100 * us)
	}
	return j
}

func run(t *testing.T, limits thresholds.Set, jobs ...*scripted.Job) *Result {
	t.Helper()
	db, err := dataset.Open(scripted.Write(t, jobs...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	threads, err := timeline.Steps(context.Background(), db)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), db, threads, limits)
	if err != nil {
		t.Fatal(err)
	}
	checkEvidence(t, db, r)
	return r
}

// checkEvidence runs each finding's query as a user would: it has rows.
func checkEvidence(t *testing.T, db *dataset.DB, r *Result) {
	t.Helper()
	for _, f := range r.Findings {
		var n int
		if err := db.Row(context.Background(), "SELECT count(*) FROM ("+f.EvidenceSQL+")", nil, &n); err != nil || n == 0 {
			t.Errorf("%s: the evidence has %d rows, %v\n%s", f.Rule, n, err, f.EvidenceSQL)
		}
	}
}

func (r *Result) find(rule string) *Finding {
	for i := range r.Findings {
		if r.Findings[i].Rule == rule {
			return &r.Findings[i]
		}
	}
	return nil
}

var (
	users   = scripted.Python("forward", "/home/me/model.py", 17)
	library = scripted.Python("Module._call_impl", "/usr/lib/python3/dist-packages/torch/nn/modules/module.py", 1)
)

// seen looks at the thread where the user's line called into the library.
func seen(j *scripted.Job, state string, weight int64) { j.Sample(state, weight, library, users) }

// Each rule fires where its problem is, by as much as the problem takes; not
// where there is less of it; and never in the plain loop.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		rule     string
		headroom float64 // ms a step
		placed   bool    // at the user's line
		fires    func(j *scripted.Job, step int)
		nearMiss func(j *scripted.Job, step int)
	}{
		{"layout", 2, true,
			func(j *scripted.Job, _ int) {
				for range 4 {
					seen(j, "on_cpu", 500*us)
					j.Op("aten::contiguous", 100*us, func() { j.Op("aten::copy_", 300*us) })
				}
			},
			func(j *scripted.Job, _ int) { j.Op("aten::contiguous", 300*us) }},
		// 200 fetches of 8 µs, the choice of the element 4 µs, the interpreter 3 µs after each.
		{"sync_in_step", 200*.008 + 199*.007, true,
			func(j *scripted.Job, _ int) {
				for range 200 {
					j.Op("aten::select", 4*us)
					seen(j, "on_cpu", 10*us)
					j.Op("aten::item", 8*us)
					j.Wait(3 * us)
				}
			},
			func(j *scripted.Job, _ int) { j.Op("aten::item", 8*us) }},
		// Nine operators of 100 µs and 10 µs between them become one.
		{"fusion", 8 * 0.100, true,
			func(j *scripted.Job, _ int) {
				for range 9 {
					seen(j, "on_cpu", 100*us)
					j.Op("aten::mul", 100*us)
					j.Wait(10 * us)
				}
			},
			func(j *scripted.Job, _ int) {
				for range 3 {
					j.Op("aten::mul", 100*us)
					j.Wait(10 * us)
				}
			}},
		{"blocked", 3, true,
			func(j *scripted.Job, _ int) {
				s := j.Sample("off_cpu", 3*ms, library, users)
				s.Cause, s.Syscall = "syscall", "clock_nanosleep"
				j.Wait(3 * ms)
			},
			func(j *scripted.Job, _ int) {
				s := j.Sample("off_cpu", 300*us, users)
				s.Cause, s.Syscall = "syscall", "clock_nanosleep"
				j.Wait(300 * us)
			}},
		{"recompilation", 2, true,
			func(j *scripted.Job, _ int) {
				j.Sample("off_cpu", 2*ms, scripted.Python("compile_inner", "/x/site-packages/torch/_dynamo/convert_frame.py", 3), users)
				j.Wait(2 * ms)
			},
			func(j *scripted.Job, _ int) {
				j.Sample("off_cpu", 2*ms, scripted.Python("_fn", "/x/site-packages/torch/_dynamo/eval_frame.py", 3), users)
				j.Wait(2 * ms)
			}},
		{"allocation_in_step", 1, false,
			func(j *scripted.Job, _ int) { j.Call("runtime", "alloc", "cudaMalloc", 1*ms) },
			func(j *scripted.Job, _ int) { j.Call("runtime", "alloc", "cudaMalloc", 20*us) }},
		{"hotspot", -1, true,
			func(j *scripted.Job, _ int) { seen(j, "on_cpu", 5*ms) },
			func(j *scripted.Job, _ int) {
				j.Sample("on_cpu", 50*us, users)
				j.Sample("on_cpu", 5*ms, library)
			}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			r := run(t, thresholds.Default(), made(c.fires))
			f := r.find(c.rule)
			switch {
			case f == nil:
				t.Fatalf("it did not fire: %+v, not claimed %+v", r.Findings, r.Abstained)
			case c.headroom < 0:
				if f.HeadroomMS != nil || f.Severity != Info {
					t.Errorf("headroom %v, severity %s", f.HeadroomMS, f.Severity)
				}
			case f.HeadroomMS == nil || *f.HeadroomMS < 0.99*c.headroom || *f.HeadroomMS > 1.01*c.headroom:
				t.Errorf("headroom %v ms, want %v", *f.HeadroomMS, c.headroom)
			case r.Findings[0].Rule != c.rule:
				t.Errorf("%s has more headroom", r.Findings[0].Rule)
			}
			if c.placed && (f.File == nil || *f.File != "/home/me/model.py" || *f.Line != 17) {
				t.Errorf("at %v", f.File)
			}
			if r := run(t, thresholds.Default(), made(c.nearMiss)); r.find(c.rule) != nil {
				t.Errorf("it fires for a near miss: %+v", *r.find(c.rule))
			}
		})
	}
}

func TestHealthyLoopHasNoFindings(t *testing.T) {
	if r := run(t, thresholds.Default(), made(nil)); len(r.Findings) > 0 || len(r.Abstained) > 0 || r.Steps < 35 {
		t.Errorf("%d steps, %+v, %+v", r.Steps, r.Findings, r.Abstained)
	}
}

func TestBackwardNodesOfElementwiseOperatorsAreFusedToo(t *testing.T) {
	j := scripted.New()
	for range 40 {
		j.Load(100 * us)
		j.Op("aten::mm", 4*ms)
		j.Backward(10*us, func() {
			for range 9 {
				j.Node("MulBackward0", -1, 50*us, func() { j.Op("aten::mul", 100*us) })
			}
			j.Node("MmBackward0", -1, 4*ms)
		})
		j.Optimize(1 * ms)
	}
	f := run(t, thresholds.Default(), j).find("fusion")
	if f == nil || *f.HeadroomMS < 1.59 || *f.HeadroomMS > 1.61 {
		t.Errorf("%+v", f)
	}
}

func TestLoaderThatStarvesTheStep(t *testing.T) {
	for load, fires := range map[int64]bool{3 * ms: true, 300 * us: false} {
		j := scripted.New()
		for range 40 {
			j.Load(0, func() {
				seen(j, "on_cpu", load)
				j.Wait(load)
			})
			j.Op("aten::mm", 5*ms)
			j.Backward(4 * ms)
			j.Optimize(1 * ms)
		}
		f := run(t, thresholds.Default(), j).find("loader_starved")
		if (f != nil) != fires {
			t.Fatalf("%d µs: %+v", load/us, f)
		}
		if fires && (*f.HeadroomMS < 2.99 || *f.HeadroomMS > 3.01 || f.Severity != High || f.File == nil || *f.Line != 17) {
			t.Errorf("%+v", *f)
		}
	}
}

// Twelve times its forward pass is brought to twice; twice is what it takes.
func TestBackwardPassOfManyTimesItsForward(t *testing.T) {
	for ratio, fires := range map[int64]bool{12: true, 2: false} {
		j := scripted.New()
		for step := range 40 {
			n := int64(step)
			j.Load(100 * us)
			j.Op("aten::mm", 4*ms)
			seen(j, "on_cpu", 500*us)
			j.Op("aten::index", 500*us).SequenceNumber = n
			j.Backward(10*us, func() {
				j.Node("IndexBackward0", n, ratio*500*us)
			})
			j.Optimize(1 * ms)
		}
		f := run(t, thresholds.Default(), j).find("backward_anomaly")
		if (f != nil) != fires {
			t.Fatalf("ratio %d: %+v", ratio, f)
		}
		if fires && (f.Name != "aten::index" || *f.HeadroomMS < 4.99 || *f.HeadroomMS > 5.01 || f.File == nil || *f.Line != 17) {
			t.Errorf("%+v of %v ms", *f, *f.HeadroomMS)
		}
	}
}

func TestThreadThatHoldsTheLock(t *testing.T) {
	for wait, fires := range map[int64]bool{5 * ms: true, 200 * us: false} {
		j := made(func(j *scripted.Job, _ int) {
			native := scripted.Python("take_gil", "", 0)
			native.Kind = "native"
			s := j.Sample("off_cpu", wait, native, library, users)
			s.Cause, s.Syscall = "syscall", "futex"
			other := j.Sample("on_cpu", wait, scripted.Python("spin", "/home/me/background.py", 5))
			holds := true
			other.TID, other.HoldsGIL = 101, &holds
			j.Wait(wait)
		})
		r := run(t, thresholds.Default(), j)
		f := r.find("gil_contention")
		if (f != nil) != fires {
			t.Fatalf("wait of %d µs: %+v", wait/us, f)
		}
		if fires && (*f.File != "/home/me/background.py" || *f.Line != 5 || *f.HeadroomMS < 4.99 || r.find("blocked") != nil) {
			t.Errorf("%+v", *f)
		}
	}
}

// native is a frame of a file without symbols of its own functions, as recorded of
// Debian's /usr/bin/python3.11, which is stripped.
func native(module, function string) event.Frame {
	return event.Frame{Kind: "native", Function: function, Module: module}
}

// TestTheLockOfAStrippedPython is told by who waits how: a function of CPython's own in
// the C library's timed wait for a condition. A lock, a queue's semaphore and another
// library's condition are none; without native frames it cannot be told, and that is said.
func TestTheLockOfAStrippedPython(t *testing.T) {
	within := native("libc.so.6", "libc.so.6+0x85e50 (fn)")
	timed := native("libc.so.6", "pthread_cond_timedwait")
	for _, c := range []struct {
		name          string
		frames        []event.Frame
		fires, untold bool
	}{
		{"restored", []event.Frame{within, timed, native("python3.11", "python3.11+0x4cea20 (fn)"), native("python3.11", "PyEval_RestoreThread")},
			true, false},
		{"inlined", []event.Frame{within, timed, native("libpython3.12.so.1.0", "PyEval_AcquireThread")}, true, false},
		{"old C library", []event.Frame{native("libpthread.so.0", "pthread_cond_timedwait@@GLIBC_2.3.2"),
			native("python3.8", "python3.8+0x51000 (fn)")}, true, false},
		{"a lock", []event.Frame{within, native("libc.so.6", "sem_clockwait"), native("python3.11", "PyThread_acquire_lock_timed")}, false,
			false},
		{"a lock without semaphores", []event.Frame{within, timed, native("python3.11", "PyThread_acquire_lock_timed")}, false, false},
		{"hands it over", []event.Frame{within, native("libc.so.6", "pthread_cond_wait"), native("python3.11", "python3.11+0x4cec00 (fn)")},
			false, false},
		{"another library's", []event.Frame{within, timed, native("libtorch_cpu.so", "libtorch_cpu.so+0x100 (fn)"),
			native("python3.11", "python3.11+0x1 (fn)")}, false, false},
		{"no native frames", nil, false, true},
	} {
		r := run(t, thresholds.Default(), made(func(j *scripted.Job, _ int) {
			s := j.Sample("off_cpu", 5*ms, append(c.frames, library, users)...)
			s.Cause, s.Syscall = "syscall", "futex"
			other := j.Sample("on_cpu", 5*ms, scripted.Python("spin", "/home/me/background.py", 5))
			holds := true
			other.TID, other.HoldsGIL = 101, &holds
			j.Wait(5 * ms)
		}))
		if f := r.find("gil_contention"); (f != nil) != c.fires || c.fires && (*f.Line != 5 || r.find("blocked") != nil) {
			t.Errorf("%s: %+v", c.name, f)
		}
		if said := strings.Contains(strings.Join(r.Untold, ";"), "Python's lock"); said != c.untold {
			t.Errorf("%s: untold %q", c.name, r.Untold)
		}
	}
}

// TestAThreadWithoutACPUIsTheMachinesFault, or its own threads', and nothing to mend in
// the code: who kept the CPUs busy is in the advice.
func TestAThreadWithoutACPUIsTheMachinesFault(t *testing.T) {
	for _, c := range []struct {
		name        string
		ready, busy int64 // of a step: without a CPU; the machine's CPU time
		throttled   int64 // of a step: by its control group's quota
		fires       bool
		advice      string
	}{
		{"others", 5 * ms, 20 * ms, 0, true, "Other processes"},
		{"others", 5 * ms, 20 * ms, 1 * ms, true, "Other processes"},
		{"a quota", 5 * ms, 20 * ms, 4 * ms, true, "Raise the limit"},
		{"its own threads", 5 * ms, 10 * ms, 0, true, "more busy threads than CPUs"},
		{"not counted", 5 * ms, 0, 0, true, "more busy threads than CPUs"},
		{"hardly ever", 200 * us, 20 * ms, 0, false, ""},
	} {
		r := run(t, thresholds.Default(), made(func(j *scripted.Job, _ int) {
			j.Sample("off_cpu", c.ready, users).Cause = "preempted"
			j.Wait(c.ready)
			j.Sample("on_cpu", 9*ms, users)
			if c.busy > 0 {
				j.Read("cpu_user", float64(c.busy))
			}
			if c.throttled > 0 {
				j.Read("cgroup_cpu_throttled", float64(c.throttled))
			}
		}))
		f := r.find("cpu_contention")
		if (f != nil) != c.fires || (r.Contended != nil) != c.fires {
			t.Fatalf("%s: %+v, %+v", c.name, f, r.Contended)
		}
		if !c.fires {
			continue
		}
		if f.HeadroomMS != nil || f.Severity != Info || !strings.Contains(f.Advice, c.advice) {
			t.Errorf("%s: %+v", c.name, *f)
		}
		// Steps of 9.2 ms and what they wait.
		if want := 100 * 5 / 14.2; r.Contended.Percent() < want-1 || r.Contended.Percent() > want+1 ||
			r.Contended.Others() != (c.name == "others") {
			t.Errorf("%s: %.1f %%, not %.1f: %+v", c.name, r.Contended.Percent(), want, *r.Contended)
		}
	}
}

func TestSlowFirstStepIsNoHeadroom(t *testing.T) {
	for wait, fires := range map[int64]bool{100 * ms: true, 20 * ms: false} {
		f := run(t, thresholds.Default(), made(func(j *scripted.Job, step int) {
			if step == 0 {
				j.Wait(wait)
			}
		})).find("first_step")
		if (f != nil) != fires || fires && (f.HeadroomMS != nil || f.Severity != Info) {
			t.Errorf("wait of %d ms: %+v", wait/ms, f)
		}
	}
}

// Steps that vary by more than a finding would bring: the rule abstains.
func TestFindingBelowTheNoiseIsNotClaimed(t *testing.T) {
	j := scripted.New()
	for step := range 40 {
		j.Load(100 * us)
		j.Op("aten::mm", 4*ms+int64(step%8)*4*ms) // the noise
		j.Op("aten::contiguous", 3*ms+int64(step/10)*100*us)
		j.Backward(4 * ms)
		j.Optimize(1 * ms)
		j.Wait(int64(step/10) * 8 * ms) // and a drift
	}
	r := run(t, thresholds.Default(), j)
	if r.find("layout") != nil || len(r.Abstained) == 0 || !strings.Contains(r.Abstained[0].Reason, "below the noise") {
		t.Errorf("floor %v: %+v, not claimed %+v", r.FloorNS, r.Findings, r.Abstained)
	}
}

// Steps between slices are half as long: the headroom in percent is the replay's,
// in milliseconds that of such a step.
func TestHeadroomIsOfAStepWithoutProbes(t *testing.T) {
	j := scripted.New()
	for step := range 60 {
		factor := int64(1)
		if step < 20 {
			factor = 2
		}
		j.Load(factor * 100 * us)
		if step < 20 {
			j.Op("aten::mm", factor*4*ms)
			j.Op("aten::contiguous", factor*2*ms)
		} else {
			j.Wait(6 * ms)
		}
		j.Backward(factor * 3 * ms)
		j.Optimize(factor * ms)
	}
	f := run(t, thresholds.Default(), j).find("layout")
	if f == nil || *f.HeadroomMS < 1.99 || *f.HeadroomMS > 2.01 || *f.HeadroomPercent < 19.7 || *f.HeadroomPercent > 19.9 {
		t.Errorf("%+v", f)
	}
}

func TestUsersThresholds(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "t.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mine, err := thresholds.Read(write("layout_percent: 90\n"), Thresholds())
	if err != nil || mine.Of(rules.Layout.Thresholds[0]) != 90 || mine.Of(rules.Loader.Thresholds[0]) != 5 {
		t.Fatalf("%+v, %v", mine, err)
	}
	fires := func(j *scripted.Job, _ int) { j.Op("aten::contiguous", 2*ms) }
	if run(t, mine, made(fires)).find("layout") != nil || run(t, thresholds.Default(), made(fires)).find("layout") == nil {
		t.Error("the user's threshold makes no difference")
	}
	if _, err := thresholds.Read(write(""), Thresholds()); err != nil {
		t.Errorf("an empty file: %v", err)
	}
	for _, text := range []string{"layout_percents: 90\n", "layout_percent: much\n", "small_copies: 1.5\n", "{"} {
		if _, err := thresholds.Read(write(text), Thresholds()); !errors.Is(err, thresholds.ErrBad) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What --print-thresholds prints is a file that --thresholds takes, with a line for each threshold.
func TestThePrintedThresholdsAreTheDefaults(t *testing.T) {
	var printed strings.Builder
	if err := thresholds.Write(&printed, Thresholds()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "printed.yaml")
	if err := os.WriteFile(path, []byte(printed.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	limits, err := thresholds.Read(path, Thresholds())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, threshold := range Thresholds() {
		if limits.Of(threshold) != threshold.Default || !strings.Contains(printed.String(), "\n"+threshold.Name+": ") || seen[threshold.Name] {
			t.Errorf("%s: %v, twice: %v", threshold.Name, limits.Of(threshold), seen[threshold.Name])
		}
		seen[threshold.Name] = true
	}
}
