// Ebpfprof-agent is the capture alone: small enough for every node, without the
// query engine. It builds with CGO_ENABLED=0.
package main

import (
	"os"

	"github.com/ebpfprof/ebpfprof/internal/cli"
)

func main() { os.Exit(cli.Main("ebpfprof-agent", os.Args)) }
