package cpython

import "fmt"

// Flavour names an interpreter that is refused, and why.
type Flavour string

// The flavours that are refused. In all of them the structures lie elsewhere.
const (
	FlavourVersion      Flavour = "version"
	FlavourDebug        Flavour = "debug build"
	FlavourTraceRefs    Flavour = "Py_TRACE_REFS build"
	FlavourFreeThreaded Flavour = "free-threaded 3.13"
	FlavourPyPy         Flavour = "PyPy"
	FlavourGraalPy      Flavour = "GraalPy"
	FlavourCinder       Flavour = "Cinder"
	FlavourMusl         Flavour = "musl libc"
	FlavourUnknown      Flavour = "unknown layout"
)

var flavourReasons = map[Flavour]string{
	FlavourVersion:      "Python %s is not one of 3.8 to 3.14",
	FlavourDebug:        "Python %s is a debug build (--with-pydebug): its objects are laid out differently; run the job with a release build",
	FlavourTraceRefs:    "Python %s was built with Py_TRACE_REFS: its objects are laid out differently; run the job with a release build",
	FlavourFreeThreaded: "Python %s is free-threaded, experimental in 3.13: use 3.14t or a build with the GIL",
	FlavourPyPy:         "the interpreter is PyPy, not CPython",
	FlavourGraalPy:      "the interpreter is GraalPy, not CPython",
	FlavourCinder:       "Python %s is Cinder, not CPython: its frames are laid out differently",
	FlavourMusl:         "Python %s runs on musl, and where its threads keep their values was not found: of musl only x86-64 is known",
	FlavourUnknown:      "Python %s is not laid out as the release of that number: a patched build?",
}

// UnsupportedError says why the Python frames of a process cannot be walked.
type UnsupportedError struct {
	Version string
	Flavour Flavour
}

func (e *UnsupportedError) Error() string {
	reason := flavourReasons[e.Flavour]
	if e.Flavour == FlavourPyPy || e.Flavour == FlavourGraalPy {
		return reason
	}
	return fmt.Sprintf(reason, e.Version)
}
