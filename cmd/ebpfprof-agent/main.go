// Ebpfprof-agent is the capture alone: small enough for every node, without the
// query engine. It builds with CGO_ENABLED=0, and loads NVIDIA's library where there is one. With
// --config FILE it stays on the node, finds jobs and records them by itself.
package main

import (
	"os"

	"github.com/ebpfprof/ebpfprof/internal/agent"
	"github.com/ebpfprof/ebpfprof/internal/record/capture"
	"github.com/ebpfprof/ebpfprof/internal/record/recorder"
)

func main() {
	if agent.Wants(os.Args) {
		os.Exit(agent.Main(os.Args))
	}
	os.Exit(capture.Main("ebpfprof-agent", os.Args, recorder.Reading{}))
}
