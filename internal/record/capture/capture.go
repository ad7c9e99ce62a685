// Package capture puts the commands together that trace: they load BPF programs,
// need Linux and most of them root. A build without them (-tags reader) reads
// datasets anywhere.
package capture

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/record/doctor"
	"github.com/ebpfprof/ebpfprof/internal/record/recorder"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/features"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// Main runs the command line with the commands that trace around those that only one of the binaries has, and returns
// the exit code. Recordings end with what a build that reads datasets adds.
func Main(name string, args []string, reading recorder.Reading, more ...*urfave.Command) int {
	if len(args) > 1 && args[1] == recorder.GateCommand {
		return recorder.Gate(args[2:])
	}
	return cli.Main(name, args, Commands(reading, more...)...)
}

// Commands tells the command line of the tracer's errors and of what its flags can
// be, and returns the commands in the order of the help.
func Commands(reading recorder.Reading, more ...*urfave.Command) []*urfave.Command {
	cli.EndWith(cli.ExitUsage, tracer.ErrUnknownGroup)
	cli.EndWith(cli.ExitNotPermitted, features.ErrNotPermitted, process.ErrPermission)
	cli.EndWith(cli.ExitUnsupported, features.ErrUnsupported)
	cli.EndWith(cli.ExitNothing, recorder.ErrNothingCaptured)
	cli.CompleteValues("level", func() []string { return []string{"anchor", "window", "deep"} })
	cli.CompleteValues("budget", func() []string { return []string{"1%", "5%", "off"} })
	cli.CompleteValues("device-times", func() []string { return []string{"bounds", "profiler"} })
	cli.CompleteValues("probe", groupNames)
	cli.CompleteValues("pid", interpreters)
	return slices.Concat(
		[]*urfave.Command{recorder.AttachCommand(reading), recorder.RunCommand(reading), recorder.TopCommand()}, more,
		[]*urfave.Command{doctor.ProbesCommand(), doctor.Command()})
}

func groupNames() (names []string) {
	for _, g := range catalog.Groups() {
		names = append(names, g.Name)
	}
	return names
}

// interpreters are the processes that run Python.
func interpreters() (pids []string) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		exe, err := os.Readlink("/proc/" + e.Name() + "/exe")
		if err == nil && strings.HasPrefix(filepath.Base(exe), "python") {
			pids = append(pids, e.Name())
		}
	}
	return pids
}
