package main

// What commands have in common: their arguments, and what is wrong with them.

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
)

// usageError is one of the command line's, failed one of anything else.
func usageError(err error) error { return urfave.Exit(err, cli.ExitUsage) }

func failed(err error) error { return urfave.Exit(err, cli.ExitFailed) }

func known(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// bytesFlag is a flag's number of bytes, 0 if it is not given.
func bytesFlag(c *urfave.Context, name string) (int64, error) {
	text := c.String(name)
	if text == "" && !c.IsSet(name) {
		return 0, nil
	}
	number, unit := strings.TrimSpace(text), int64(1)
	for suffix, factor := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40} {
		if before, is := strings.CutSuffix(number, suffix); is {
			number, unit = strings.TrimSpace(before), factor
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/unit {
		return 0, usageError(fmt.Errorf("--%s %s: give a number of bytes above zero, such as 1048576 or 16GiB", name, text))
	}
	return n * unit, nil
}

// byteSize reads 500MB, 2GiB or a number of bytes; nothing is 0.
func byteSize(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	factor := 1.0
	number := strings.TrimSpace(text)
	for _, unit := range []struct {
		name  string
		bytes float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"B", 1}} {
		if cut, ok := strings.CutSuffix(strings.ToUpper(number), strings.ToUpper(unit.name)); ok {
			number, factor = strings.TrimSpace(cut), unit.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n <= 0 || math.IsInf(n*factor, 0) || n*factor > 1<<60 {
		return 0, fmt.Errorf("--max-size %q: give a size such as 500MB", text)
	}
	return int64(n * factor), nil
}
