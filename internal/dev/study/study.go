// Package study is what commands have in common that record jobs of their own many times
// and say how right the answers are: internal/dev/fleetfaults, internal/dev/pairs,
// internal/dev/planted and internal/dev/shortruns.
package study

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

// Main runs a study, until Ctrl-C, and ends the process with status 1 on an error. Without
// root nothing can be recorded: it says so, and that is no error.
func Main(name string, run func(context.Context) error) {
	if os.Geteuid() != 0 {
		fmt.Printf("%s: skipped: it needs root\n", name)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
