package timeline_test

import (
	"context"
	"maps"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// TestCodeSaysThePhaseWhereNoScopeDoes: operators that are called from PyTorch's optimizers
// and its loader, and what Python takes between them, but for what lies around and longer
// pauses.
func TestCodeSaysThePhaseWhereNoScopeDoes(t *testing.T) {
	const us, ms = 1_000, 1_000_000
	users := scripted.Python("main", "/home/me/train.py", 17)
	for _, c := range []struct {
		name   string
		scoped bool
		want   map[string]int64
	}{
		{"no scopes", false, map[string]int64{
			timeline.Loading: 30 * us, timeline.Forward: 4 * ms, timeline.Backward: 3 * ms,
			timeline.Optimizer: 10*100*us + 9*50*us + 100*us, timeline.OtherPhase: 5 * ms,
		}},
		// The scope says it: only what is in it is the optimizer's.
		{"scopes", true, map[string]int64{
			timeline.Forward: 4*ms + 30*us + 10*100*us + 100*us, timeline.Backward: 3 * ms,
			timeline.Optimizer: 200 * us, timeline.OtherPhase: 5*ms + 9*50*us,
		}},
	} {
		j := scripted.New()
		begin := j.Now
		from := func(file string) int64 {
			return j.Stack(scripted.Python("step", "/usr/lib/python3/dist-packages/torch/"+file, 3), users)
		}
		j.Op("aten::stack", 30*us).PythonStackID = from("utils/data/_utils/collate.py")
		j.Op("aten::mm", 4*ms).PythonStackID = from("nn/functional.py")
		j.Backward(1*ms, func() { j.Op("aten::mm", 1*ms).PythonStackID = from("nn/functional.py") })
		for n := range 10 {
			if n > 0 {
				j.Wait(50 * us)
			}
			j.Op("aten::mul_", 100*us).PythonStackID = from("optim/adamw.py")
		}
		j.Wait(5 * ms) // no loop over parameters
		j.Op("aten::zero_", 100*us).PythonStackID = from("optim/optimizer.py")
		if c.scoped {
			j.Optimize(200 * us)
		}
		db, err := dataset.Open(scripted.Write(t, j))
		if err != nil {
			t.Fatal(err)
		}
		took, err := timeline.Phases(context.Background(), db, dataset.Scan{}, int(j.PID), int(j.TID),
			[]timeline.Stretch{{Begin: begin, Until: j.Now}}, false)
		if err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(took[0], func(_ string, ns int64) bool { return ns == 0 })
		if !maps.Equal(took[0], c.want) {
			t.Errorf("%s: %v, want %v", c.name, took[0], c.want)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
