// Package spec has the terms that the catalog's tables are written in, and that whoever
// reads a table knows: groups of functions (this file), what is captured of a call and what
// that means (value.go), what a call that succeeds changes (effect.go), and the shorthand of
// tables whose functions are C entry points that return a status (runtime.go). It knows no
// runtime.
//
// A table imports it with a dot: nearly every word of a table is one of these terms, and
// with a qualifier before each the arguments of a call could not be read at a glance.
package spec

import (
	"slices"
	"strings"
)

// Tier says how a group is kept within the budget.
type Tier uint8

const (
	// Anchor groups are attached for the whole recording: few calls a step.
	Anchor Tier = iota
	// Detail groups are attached in slices when the budget asks for it.
	Detail
)

// Action is what a call of a function becomes.
type Action uint8

const (
	Span       Action = iota // a row of span
	Event                    // an instant: a row of memory
	Urgent                   // an instant that is decoded at once
	ScopeBegin               // opens a framework scope; its end is another function
	ScopeEnd
	Sequence   // its first value is the autograd sequence number of the operator around it
	RunsPython // the call around it runs Python code from now on: what that calls has lines of its own
	Mark       // begins what its caller's next call of a function with SinceMark ends
	// Timed is an Event that takes time, from the entry to the return: where nothing may see
	// that, it is an Event.
	Timed
	// Instant is a span that ends as it begins, somewhere in a function.
	Instant
)

// End says which probes see the end of a call.
type End uint8

const (
	// NoEnd: an instant.
	NoEnd End = iota
	// ExitSites: C++ code that may throw. No return probe, ever: an exception
	// that meets the kernel's trampoline aborts the process.
	ExitSites
	// Return: a C function that neither throws nor runs caller code, or (JumpsTo) what is a
	// jump to one.
	Return
)

// Text says how a captured string is stored.
type Text uint8

const (
	NoText      Text = iota
	CString          // char *
	CStringLong      // char *, of which up to 4095 bytes are kept: mangled kernel names
	CStringOut       // likewise, behind the call's Value number TextArg when it returns
	Bytes            // the first 4095 bytes behind the call's Value number TextArg, whose number is the next one
	CxxString        // const std::string &; which layout the symbol's mangling says
	PythonType       // the name of the Python type that the call's Value number TextArg points to
)

// Name says how a call is named.
type Name uint8

const (
	// Fixed: Function.Label.
	Fixed Name = iota
	// FromOperator: the operator's schema name, from the class at::_ops::X.
	FromOperator
	// FromMethod: Function.Label and the method's own name from the symbol.
	FromMethod
	// FromText: the captured string.
	FromText
	// FromVTable: the class of the object whose vtable was captured.
	FromVTable
	// FromKernel: the name of the captured kernel handle, learnt at its creation.
	FromKernel
	// FromExecutable: the name of the captured executable, by whichever of its handles.
	FromExecutable
	// FromCaller: what the line of generated Python calls it that the call comes from.
	FromCaller
)

// Memory says which columns of a memory row a function fixes.
type Memory struct {
	Space, Level, Action string
	// Spaces are those of calls with one of these bits in FieldFlags.
	Spaces []FlagSpace
}

// FlagSpace is the space of memory that was asked for with a flag.
type FlagSpace struct {
	Flag  uint64
	Space string
}

// Function is one row of a table.
type Function struct {
	Library string // prefixes of the file's base name, with spaces between: "libtorch_cpu.so"
	Symbol  string // prefix of the mangled name, up to the parameter list
	// Anywhere: it is looked for in every library that exports this symbol too,
	// whatever that is called: code that is linked into others.
	Anywhere string
	// Holds is a text among the constants of those libraries in which the function is
	// looked for: it tells one compiler's from what others give the same names.
	Holds string
	// Table: Symbol is a function of this table of function pointers, in whichever
	// library has one; Library is empty. See tracer/pjrt.
	Table  string
	Suffix string // what follows the varying part: "4callE" for operators
	Exact  bool   // the symbol is the whole name

	Layer, Category, Runtime string
	Name                     Name
	Label                    string

	Action  Action
	End     End
	Values  []Value
	Text    Text
	TextArg uint8
	// TextPrefix begins the texts of the calls that have a row; it is no part of their name.
	TextPrefix string
	Memory     *Memory
	// KeyOffset is added to the argument that ends a scope to give its key.
	KeyOffset int16
	// Direction is that of a copy which the function fixes: host_to_device, …
	Direction string
	// Effect is what the call changes in what is known about its process.
	Effect Effect
	// OutOfMemory is the status of an allocation that found no room, 0 if there is none.
	OutOfMemory int32
	// NotReady is the status that says "not yet" and is no error, 0 if there is none.
	NotReady int32
	// Since names the first, or else the last, version of the library that has
	// the function, where none of those listed in testdata/symbols does.
	Since string
	// PerThread: a stream of 0 is the calling thread's own.
	PerThread bool
	// Dtypes names the library's element types by their number.
	Dtypes []Dtype
	// ExpensiveEnd: calls are few, or long: an exit site that the kernel has to
	// single-step is bearable.
	ExpensiveEnd bool
	// AtTailJump: the probe sits where the function jumps into the one that it
	// ends with, whose arguments are then in place.
	AtTailJump bool
	// JumpsTo: the function is a jump to this one of C, and nothing else; only where that is
	// so may its return be probed.
	JumpsTo string
	// SinceMark: the instant ends what a Mark began.
	SinceMark bool
	// Python: the call runs Python code, which has lines of its own.
	Python bool
	// Requires and Unless are symbol prefixes: the function is probed only in
	// libraries that define the one and do not define the other.
	Requires, Unless string
	// StatusOK: a returned 0 is success, anything else the runtime's error code.
	StatusOK bool
	// Returns is what the returned value is. A call that then returns 0 has
	// failed, with FieldError if that was asked for.
	Returns Field
	// Parameter is what FieldParameter must be for the call to have its effect;
	// 0 is anything.
	Parameter uint64
	// OrderedBy: of OrdersStream, the bit says that work runs in order, not that
	// it may not.
	OrderedBy bool
	// Node is the layout of FieldNodeKind's parameters.
	Node *NodeLayout
	// Step: one call is about one training step; slices are measured in it.
	Step bool
	// Asked is what a user said about the function; nil of the catalog's.
	Asked *Asked
	// Share is which of the parameters that are tensors, or a vector of them, is one
	// rank's share of a collective, counted from 1; 0 is none.
	Share uint8
}

// Group is what --probe switches: functions that one would want together.
type Group struct {
	Name string
	Help string
	Tier Tier
	// Anchor: the group is recorded at the anchor level, which watches a job for hours.
	Anchor bool
	// With names the groups without which this one's rows lack their names or
	// devices: they come along.
	With []string
	// OnDemand groups are probed only where --probe names them.
	OnDemand bool
	// Launches: its calls are what gives a device its work. Where nothing can be in
	// slices, they are recorded one and all, while the budget has room for them.
	Launches bool
	// Asked: a user asks for the functions, which are in no catalog.
	Asked     bool
	Functions []Function
}

// In reports whether the function is looked for in a library of this base name.
func (f *Function) In(base string) bool {
	if f.Asked != nil {
		rest, ok := strings.CutPrefix(base, f.Asked.File)
		return ok && (f.Asked.File == "" || rest == "" || rest[0] == '.' || rest[0] == '-')
	}
	for prefix := range strings.FieldsSeq(f.Library) {
		if strings.HasPrefix(base, prefix) {
			return true
		}
	}
	return false
}

// Exporter is a file's table of what it exports.
type Exporter interface{ Exports(symbol string) bool }

// Lives reports whether the function is looked for in a file of this base name
// and with these exports.
func (f *Function) Lives(base string, file Exporter) bool {
	return f.In(base) || f.Anywhere != "" && file.Exports(f.Anywhere)
}

// HasResults reports whether the call hands something out through memory that is
// captured at its end.
func (f *Function) HasResults() bool {
	return slices.ContainsFunc(f.Values, func(v Value) bool { return v.AtReturn })
}

// PJRTTable is Function.Table of what is found in a plugin's PJRT_Api.
const PJRTTable = "PJRT_Api"

// Dtype is an element type of a library.
type Dtype struct {
	Name  string
	Bytes int64
}

// Element is an element type of so many bytes.
func Element(name string, bytes int64) Dtype { return Dtype{Name: name, Bytes: bytes} }
