// Ebpfprof traces machine-learning jobs with eBPF and answers questions about
// what it recorded.
package main

import "os"

func main() {
	os.Exit(commandLine("ebpfprof", os.Args,
		reportCommand(),
		stepsCommand(),
		queryCommand(),
		stacksCommand(),
		memoryCommand(),
		importCommand(),
		lintCommand(),
		symbolizeCommand(),
		fleetCommand(),
	))
}
