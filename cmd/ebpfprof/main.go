// Ebpfprof traces machine-learning jobs with eBPF and answers questions about
// what it recorded.
package main

import (
	"os"

	"github.com/ebpfprof/ebpfprof/internal/cli"
)

func main() {
	os.Exit(cli.Main("ebpfprof", os.Args, queryCommand(), stacksCommand(), symbolizeCommand(), memoryCommand()))
}
