package python

import (
	"strconv"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/pythons"
)

// TestASampleInTheMiddleOfACallIsAPathOfCalls interrupts a thread that does
// little but call and return. Whatever it was doing, a walk that says it is
// whole is a path from the thread's start through functions of which each
// calls the next.
func TestASampleInTheMiddleOfACallIsAPathOfCalls(t *testing.T) {
	eachPython(t, func(t *testing.T, python pythons.Python) {
		w := newWalker(t)
		j := startJob(t, python)
		pid := j.cmd.Process.Pid
		i := openPID(t, pid)
		w.follow(pid, i)
		j.say("churn")
		tid, _ := strconv.Atoi(j.line())
		w.sample(tid)
		outcomes := map[string]int{}
		stacks := w.taken()[uint32(tid)]
		for _, s := range stacks {
			outcomes[Outcome(s.Stack.Outcome).Name()]++
			if Outcome(s.Stack.Outcome).Whole() {
				checkPath(t, named(t, i, &s.Stack))
			}
		}
		t.Logf("%d samples: %v", len(stacks), outcomes)
		if whole := outcomes["python_ok"]; whole < 10 || whole*100 < 98*len(stacks) {
			t.Errorf("of %d samples %d are whole", len(stacks), whole)
		}
		j.say("")
	})
}

// checkPath expects churner, and below it a, b, c and so on.
func checkPath(t *testing.T, frames []frame) {
	t.Helper()
	below := 0
	for below < len(frames) && frames[below].function != "churner" {
		below++
	}
	if below == len(frames) {
		return // the thread was just beginning
	}
	checkBelow(t, frames[below+1:])
	want := "a"
	for n := below - 1; n >= 0; n-- {
		name := strings.TrimPrefix(frames[n].function, "Churn.")
		if name != want && !(want == "d" && name == "d_twin") {
			t.Errorf("%s calls %s:%s", frames[n+1].function, name, format(frames))
			return
		}
		want = string(want[0] + 1)
	}
}
