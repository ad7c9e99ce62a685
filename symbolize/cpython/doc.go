// Package cpython reads CPython's own data: where its structures lie in each
// version, what a code object is called, which line an instruction belongs to.
// It runs nothing and changes nothing; memory comes in as an io.ReaderAt.
//
// It knows CPython 3.8 to 3.14 as released. Other interpreters that look like
// it (debug builds, PyPy, GraalPy, Cinder, 3.13t) are refused by name.
//
// The package is no part of the public API: it may change with any version.
package cpython
