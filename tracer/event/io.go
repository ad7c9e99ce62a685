package event

// The values of IO.Operation.
const (
	IORead  = "read"
	IOWrite = "write"
	IOSync  = "sync" // fsync, fdatasync: the data of before are on the device when it returns
	// IOFault is a major fault: a page of a mapping came from its file, or from swap. Its
	// bytes and when it began are not known.
	IOFault = "fault"
)

// The values of IO.Kind: what is read or written.
const (
	IOFile      = "file"
	IOSocket    = "socket"
	IOPipe      = "pipe"
	IODevice    = "device" // /dev/null, a terminal, a disk
	IODirectory = "directory"
	IOOther     = "other"  // eventfd, timerfd and the like
	IONone      = "none"   // the descriptor was not open
	IOMemory    = "memory" // of no file: what had been swapped out
)

// IO is what one thread has read or written of one kind, for a second or for a part of one.
type IO struct {
	TSNS  int64 // when the first call began: by it a call counts to a second and to a step
	EndNS int64 // when the last one ended
	PID   int32
	TID   int32
	// Operation and Kind are "" where a thread had more kinds than are kept apart.
	Operation  string
	Kind       string
	FileSystem string // its type: ext4, nfs4, tmpfs; "" is absent
	Mount      string // where the process has it mounted; "" is absent
	Device     string // major:minor of the file system; "" is absent
	Path       string // of the file, where paths are recorded; "" is absent
	Calls      int64
	Failed     int64 // of them
	Bytes      int64 // those of IOFault are not known, nor is its DurationNS
	DurationNS int64
	// WaitedNS is how much of it the thread was off the CPU; nil where waits are not seen.
	WaitedNS *int64
}
