package findings

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/thresholds"
	"github.com/ebpfprof/ebpfprof/internal/testkit/scripted"
)

// TestLoadersWorkersAreLookedInto: the training thread waits in the loop's line, the time goes
// in a process that was forked there.
func TestLoadersWorkersAreLookedInto(t *testing.T) {
	j, worker := scripted.New(), scripted.New()
	worker.PID, worker.TID, worker.Parent = 101, 101, j.PID
	loop := scripted.Python("main", "/home/me/train.py", 30)
	forked := scripted.Python("_worker_loop", "/x/site-packages/torch/utils/data/_utils/worker.py", 300)
	for range 40 {
		worker.Now = j.Now
		j.Call("scope", "", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, func() {
			j.Sample("off_cpu", 3*ms, library, loop)
			j.Wait(3 * ms)
		})
		worker.Sample("off_cpu", 3*ms, library, users, forked, loop)
		worker.Wait(3 * ms)
		worker.Sample("off_cpu", 9*ms, library, forked, loop) // it waits for what to do
		j.Op("aten::mm", 5*ms)
		j.Backward(4 * ms)
		j.Optimize(1 * ms)
	}
	f := run(t, thresholds.Default(), j, worker).find("loader_starved")
	if f == nil || f.File == nil || *f.File != "/home/me/model.py" || *f.Line != 17 {
		t.Errorf("%+v", f)
	}
}
