package event

// ShortProcess are children of a traced process that ended before they were looked at: those
// of one command that ended between two looks, added up.
type ShortProcess struct {
	TSNS  int64 // the look before
	EndNS int64 // the look by which they had ended
	// ParentPID is the traced process that started them, or what started them.
	ParentPID int32
	// Command is the name of the program that they executed, its first 15 bytes; Executed is
	// false of those that executed none: copies of the process that forked them, whose
	// thread's name it then is.
	Command  string
	Executed bool
	Count    int64
	Failed   int64 // of them: ended with an error, or by a signal
	WallNS   int64 // from their forks to their ends, of all together
	CPUNS    int64 // that they used of a CPU, likewise
}
