package memory

import (
	"math"
	"strconv"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
)

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
		return 0, cli.Usagef("--%s %s: give a number of bytes above zero, such as 1048576 or 16GiB", name, text)
	}
	return n * unit, nil
}
