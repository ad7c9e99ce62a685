package decode

import (
	"github.com/ebpfprof/ebpfprof/tracer/accel"
	"github.com/ebpfprof/ebpfprof/tracer/process"
	"github.com/ebpfprof/ebpfprof/tracer/rows"
)

// Runtimes is what the calls into accelerator runtimes have told (package accel).
type Runtimes struct {
	memory      *processMemory
	executables *accel.Executables
	cuda        *accel.CUDAHandles
	calls       *accel.State
}

// runtimeRows are where package accel puts rows.
type runtimeRows struct {
	*rows.Batch
	*rows.CallNames
}

var _ accel.Rows = runtimeRows{}

func newRuntimes(to *rows.Rows, namers []accel.Namer) *Runtimes {
	memory := newProcessMemory()
	r := &Runtimes{
		memory: memory, executables: accel.NewExecutables(memory), cuda: accel.NewCUDAHandles(memory),
		calls: accel.New(memory, runtimeRows{&to.Batch, &to.Names}),
	}
	r.calls.AddNamer(r.cuda)
	for _, n := range namers {
		r.calls.AddNamer(n)
	}
	return r
}

// Mapped tells which libraries a process has now. It is the manager's, who says Remapped
// to the decoder after it.
func (r *Runtimes) Mapped(pid int, libraries []*process.Library) { r.calls.Mapped(pid, libraries) }

// Remapped takes up what Mapped told.
func (r *Runtimes) Remapped(pid uint32) { r.calls.Remapped(pid) }

// Driver tells which driver library a process has mapped.
func (r *Runtimes) Driver(pid uint32, buildID string) { r.cuda.Mapped(pid, buildID) }

// Forget implements Owner.
func (r *Runtimes) Forget(pid uint32) {
	r.executables.Ended(pid)
	r.cuda.Ended(pid)
	r.memory.ended(pid)
	r.calls.Ended(pid)
}
