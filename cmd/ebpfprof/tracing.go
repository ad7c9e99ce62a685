//go:build linux && !reader

package main

import (
	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli/commands/analysis"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/data"
	"github.com/ebpfprof/ebpfprof/internal/record/capture"
	"github.com/ebpfprof/ebpfprof/internal/record/demo"
	"github.com/ebpfprof/ebpfprof/internal/record/recorder"
)

// records: this build has the commands that trace.
const records = true

// commandLine has the commands that trace, too; what they record ends with its verdict.
func commandLine(name string, args []string, more ...*urfave.Command) int {
	reading := recorder.Reading{Answer: analysis.First, Merge: data.MergeOnDemand, MergeActivities: data.MergeActivities,
		Serves: true}
	return capture.Main(name, args, reading, append(more, demo.Command())...)
}
