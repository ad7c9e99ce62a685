package event

// The values of Slice.Phase: strata, each of which is estimated by itself.
const (
	PhaseTraining   = "training"   // training steps
	PhaseEvaluation = "evaluation" // batches without a backward pass
	PhaseOther      = "other"      // the rest: imports, preparation, checkpoints
)

// The values of Slice.Unit: what it was counted in.
const (
	UnitSteps = "steps" // training steps, each seen by a probe that is always in
	UnitCalls = "calls" // calls of an operator that stands in for steps, counted all the time
	UnitNodes = "nodes" // autograd nodes, as PyTorch numbers them
	UnitTime  = "time"  // nanoseconds
)

// Slice is one interval in which a group of probes was in, as far as it lies in one
// phase of one process, and what it stands for. The stretches of a process, a group and
// a phase lie side by side from the beginning of the recording to its end, so that the
// sum of Represented is all that there was.
type Slice struct {
	ID      int64 // positive, unique in the session
	PID     int32
	Group   string // of probes, as the catalog names it
	BeginNS int64
	EndNS   int64
	// FromNS and ToNS bound the stretch that it stands for.
	FromNS int64
	ToNS   int64
	Phase  string
	Unit   string
	// Recorded is how much of the phase it saw, Represented how much there was in its
	// stretch, both in Unit. Nothing recorded: a stretch that no slice saw.
	Recorded    float64
	Represented float64
	// Steps is how many whole steps it saw, or equal pieces where no steps are known:
	// the SliceStep of its rows goes from 1 to that.
	Steps int32
}
