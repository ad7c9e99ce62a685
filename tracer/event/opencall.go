package event

// OpenCall is a call that has begun and not ended: a collective that its group has not
// finished, a thread that waits for one. It has no end, so it is no span yet.
type OpenCall struct {
	StartNS int64
	PID     int32
	TID     int32
	Call    *Call // category work: a collective that was issued and has not ended; else as its span will have it
	SpanID  int64 // of the call that issued it, or of the wait
	// Communicator is its place in Communicators, -1 where that is not known.
	Communicator int
	Number       *int64 // of the collective in its group, the same on every rank
	Bytes        *int64
	Dtype        string // "" is absent
	ElementCount *int64
	PeerRank     *int32
	StackID      *int64
	// PythonStackID is as a Span's; 0 is absent.
	PythonStackID int64
}

// Communicator is a group of ranks as one process knows it.
type Communicator struct {
	PID         int32
	ID          *int64 // the same on every rank
	Handle      int64  // the library's own, in this process
	Runtime     string // gloo, nccl
	Name        string // "" is absent
	Description string // "" is absent
	Rank        *int32 // of the process
	Ranks       *int32 // how many there are
	// The last collective that the process has asked the group for, and the last one
	// that has ended; nil before the first.
	IssuedNumber    *int64
	IssuedName      string
	IssuedNS        *int64
	CompletedNumber *int64
	CompletedNS     *int64
}

// OpenCalls is what was open at one moment, all of it.
type OpenCalls struct {
	SeenNS        int64
	Calls         []OpenCall
	Communicators []Communicator
	// Threads are where threads were that did not run, if a process of the job stood still.
	Threads []StillThread
}

// StillThread is a thread that did not run when it was looked at.
type StillThread struct {
	SeenNS   int64
	SinceNS  *int64 // it has surely not run since; nil: it has, a moment before or after
	PID, TID int32
	Syscall  string // that it was in; "" is absent
	StackID  *int64
	State    string // why it did not run; "" is absent
}

// Why a thread did not run.
const (
	ThreadSleeping        = "sleeping"        // a signal would have woken it
	ThreadUninterruptible = "uninterruptible" // none would
	ThreadStopped         = "stopped"         // by a signal
	ThreadTraced          = "traced"          // by a debugger
)
