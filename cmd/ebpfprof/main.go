// Ebpfprof traces machine-learning jobs with eBPF and answers questions about
// what it recorded.
package main

import (
	"os"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli/commands/analysis"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/assistant"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/benchmark"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/data"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/fleet"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/memory"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/page"
)

func main() { os.Exit(commandLine("ebpfprof", os.Args, answers()...)) }

// answers are the commands that read datasets, in the order of the help.
func answers() []*urfave.Command {
	return []*urfave.Command{
		analysis.ReportCommand(),
		analysis.FindingsCommand(),
		page.ServeCommand(),
		assistant.Command(),
		analysis.DiffCommand(),
		analysis.TreeCommand(),
		analysis.StepsCommand(),
		analysis.CriticalPathCommand(),
		analysis.ViewsCommand(),
		data.SearchCommand(),
		data.AnnotateCommand(),
		analysis.PeaksCommand(),
		data.QueryCommand(),
		analysis.StacksCommand(),
		memory.Command(),
		data.ImportCommand(),
		data.JoinCommand(),
		data.MergeCommand(),
		data.LintCommand(),
		data.ExportCommand(),
		data.SymbolizeCommand(),
		benchmark.Command(records),
		fleet.Command(),
	}
}
