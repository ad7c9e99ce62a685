// Package version holds the version of the tool.
package version

// Version is the tool's version; the Makefile sets it from git.
var Version = "0.2.0-dev"
