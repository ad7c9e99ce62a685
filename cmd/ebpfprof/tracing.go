//go:build linux && !reader

package main

import "github.com/ebpfprof/ebpfprof/internal/record/capture"

// commandLine has the commands that trace, too.
var commandLine = capture.Main
