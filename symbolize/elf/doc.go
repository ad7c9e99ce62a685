// Package elf reads one ELF file in place: its headers, symbols, linkage stubs and
// frame descriptions, which function covers an address, and a key for what is made
// of its contents. Unlike debug/elf it takes nothing that the file says for true: a
// file can harm its reader neither by its tables (limits.go) nor by being cut short
// while it is read (Guard).
//
// The package is no part of the public API: it may change with any version.
package elf
