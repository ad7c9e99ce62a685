// Package pjrt reads the function table of a PJRT plugin: the library through
// which JAX, and whatever else speaks PJRT, reaches an accelerator. A plugin
// exports one function, GetPjrtApi, which returns the address of a table of
// function pointers; the functions themselves have no names that a linker could
// find. The table is found without calling anything: the code of GetPjrtApi is
// decoded, and what it may return is looked at in the memory of a process that
// has the plugin loaded.
//
// The package is no part of the public API: it may change with any version.
package pjrt
