//go:build !linux || reader

package main

import "github.com/ebpfprof/ebpfprof/internal/cli"

const records = false

// commandLine has what reads datasets only: no loader, no BPF objects.
var commandLine = cli.Main
