// Ebpfprof traces machine-learning jobs with eBPF and answers questions about
// what it recorded.
package main

import "os"

func main() {
	os.Exit(commandLine("ebpfprof", os.Args,
		reportCommand(),
		findingsCommand(),
		diffCommand(),
		treeCommand(),
		stepsCommand(),
		criticalPathCommand(),
		viewsCommand(),
		searchCommand(),
		annotateCommand(),
		peaksCommand(),
		queryCommand(),
		stacksCommand(),
		memoryCommand(),
		importCommand(),
		lintCommand(),
		exportCommand(),
		symbolizeCommand(),
		fleetCommand(),
	))
}
