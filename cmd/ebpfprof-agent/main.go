// Ebpfprof-agent is the capture alone: small enough for every node, without the
// query engine. It builds with CGO_ENABLED=0.
package main

import (
	"os"

	"github.com/ebpfprof/ebpfprof/internal/capture"
)

func main() { os.Exit(capture.Main("ebpfprof-agent", os.Args)) }
