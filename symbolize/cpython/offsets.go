package cpython

// Absent is the offset of a field that a version has not.
const Absent = -1

// Offsets says where in CPython's structures the fields lie, in bytes. The
// names are those that offsetof/offsetof.c prints.
type Offsets struct {
	// _PyRuntime
	RuntimeAutoTSS      int // {int initialised; pthread_key_t key}
	RuntimeGIL          int // up to 3.11: {last_holder, locked}
	RuntimeInterpreters int // pointer to the first interpreter
	RuntimeMain         int // pointer to the main one
	RuntimeCollecting   int // 3.8: int gc.collecting
	RuntimeSize         int
	// PyInterpreterState
	InterpreterNext       int
	InterpreterThreads    int // pointer to the youngest thread state
	InterpreterGIL        int // since 3.12: pointer to the GIL
	GILHolder             int // in that: {last_holder, locked}
	InterpreterCollecting int // since 3.9
	// PyThreadState
	StateNext        int
	StateInterpreter int
	StateFrames      int // the running frame; of 3.11 and 3.12 the CFrame
	StateCFrame      int // 3.10
	StateThread      int // pthread_self
	StateNative      int // the kernel's thread id, since 3.11
	// CFrame, 3.10 to 3.12
	CFrameCurrent  int
	CFramePrevious int
	// PyFrameObject, since 3.11 _PyInterpreterFrame
	FrameCode        int // since 3.14 with tag bits
	FramePrevious    int
	FrameInstruction int // f_lasti, prev_instr or instr_ptr
	FrameOwner       int // of 3.11 is_entry
	FrameTLBC        int // free-threaded: index of the bytecode's copy
	// PyCodeObject
	CodeArgcount  int
	CodeKwonly    int
	CodeFlags     int
	CodeLine      int // co_firstlineno
	CodeFilename  int
	CodeName      int
	CodeQualname  int // since 3.11
	CodeLinetable int // up to 3.9 co_lnotab
	CodeTLBC      int // free-threaded: pointer to {number, copies…}
	CodeStart     int // since 3.11: the bytecode
	// objects
	ObjectType     int
	TypeName       int
	UnicodeLength  int
	UnicodeState   int
	UnicodeASCII   int // characters of an ASCII string
	UnicodeCompact int // characters of any other
	UnicodeKind    int // lowest bit of kind in the state word; compact and ascii follow it
	BytesSize      int
	BytesData      int
}

// Table is the offsets of one flavour of one minor version.
type Table struct {
	Minor int // of 3.x
	// FirstPatch is the first release the table holds for; a later table of
	// the same minor version replaces it from its own.
	FirstPatch   int
	FreeThreaded bool
	// Measured lists the builds whose headers gave these numbers. Without any
	// they were read elsewhere and never run: Source says where.
	Measured []string
	Source   string
	Offsets  Offsets
}

// tables are all of them, the later patch first.
var tables = []*Table{&table38, &table39, &table310, &table311, &table312, &table313, &table314, &table314t}

// Lookup finds the table of a release, nil where there is none.
func Lookup(v Version) *Table {
	for _, t := range tables {
		if v.Major == 3 && t.Minor == v.Minor && t.FreeThreaded == v.FreeThreaded && v.Patch >= t.FirstPatch {
			return t
		}
	}
	return nil
}
