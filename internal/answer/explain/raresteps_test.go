package explain

import (
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/model/steps"
)

func periods(n, each int, ordinary, heavy int64) (all []steps.Step) {
	at := int64(1e18)
	for i := range n {
		took := ordinary
		if each > 0 && i%each == each-1 {
			took = heavy
		}
		all = append(all, steps.Step{Begin: at, End: at + took, Period: took})
		at += took
	}
	return all
}

// TestRareHeavyStepsAreFound: one step in 25 that takes 20 times as long is a kind of its own; a little noise is none.
func TestRareHeavyStepsAreFound(t *testing.T) {
	k := kindsOf(periods(500, 25, 20e6, 400e6))
	if len(k.heavy) != 20 || k.medianNS != 20e6 {
		t.Errorf("%d heavy steps, the others take %g ns", len(k.heavy), k.medianNS)
	}
	var noisy []steps.Step
	for i, s := range periods(500, 0, 20e6, 0) {
		s.Period += int64(i%37) * 2e5 // up to 36 % longer, without a gap
		noisy = append(noisy, s)
	}
	if k := kindsOf(noisy); len(k.heavy) != 0 {
		t.Errorf("%d steps of noise are heavy", len(k.heavy))
	}
}

// TestRareHeavyStepsNameWhatIsInThem and not in the others.
func TestRareHeavyStepsNameWhatIsInThem(t *testing.T) {
	r := made(t, []seen{{8000, "on", script + "; evaluate@/home/me/fit.py:9; op:aten::mm"},
		{10000, "on", script + "; train@/home/me/fit.py:20; op:aten::mm"}})
	for i := range r.Rows {
		r.Rows[i].Heavy = r.Rows[i].Stack.Innermost().Line == 9
	}
	r.steps = kindsOf(periods(500, 25, 20e6, 420e6))
	all, err := rareSteps(r)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if e := all[0]; !strings.HasPrefix(e.sentence, "20 of 500 steps") || !strings.Contains(e.sentence, "every 25 steps") ||
		!strings.Contains(e.Evidence, "evaluate (fit.py:9)") {
		t.Errorf("%s %s", e.sentence, e.Evidence)
	}
	r.steps = kindsOf(periods(500, 2, 20e6, 420e6))
	if all, err := rareSteps(r); err != nil || len(all) != 0 {
		t.Errorf("every other step is rare: %+v, %v", all, err)
	}
}

// TestWhatMakesStepsHeavyIsTheirEvidence: steps that are heavy for a wait for the interpreter's lock name the lock.
func TestWhatMakesStepsHeavyIsTheirEvidence(t *testing.T) {
	r := made(t, []seen{{9000, "futex", script + "; step@/home/me/fit.py:9; native:take_gil@libpython3.11.so.1.0"},
		{9000, "on", script + "; train@/home/me/fit.py:20; op:aten::mm"}},
		other{Thread{100, 101}, []seen{{15000, "gil", "watch@/home/me/fit.py:30"}}})
	for i := range r.Rows {
		r.Rows[i].Heavy = !r.Rows[i].OnCPU
	}
	r.steps = kindsOf(periods(500, 25, 20e6, 420e6))
	e := ofKind(found(t, r, "rare_steps", "gil"), "rare_steps")
	if e == nil || !strings.Contains(e.Evidence, "GIL") || e.Place != "fit.py:30" {
		t.Errorf("%+v", e)
	}
}
