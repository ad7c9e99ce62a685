// Package process says what a running process is: its maps and libraries, its
// interpreter and framework, its container, its job and rank. It reads /proc
// and the files that the process has mapped, through the process's own root,
// and changes nothing.
//
// The package is no part of the public API: it may change with any version.
package process
