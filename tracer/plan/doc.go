// Package plan says where the probes of a library go: it matches the library's functions
// with the catalog's, finds for each the sites of its entry and its ends (package site), and
// puts into the kernel's terms what is to be captured there. Functions that only a table in
// memory names (PJRT plugins) are planned when the table has been read.
//
// It owns the files that it opens (Source), so that what was planned is what is probed, and
// the cache of plans on disk. It loads and attaches nothing.
//
// The package is no part of the public API: it may change with any version.
package plan
