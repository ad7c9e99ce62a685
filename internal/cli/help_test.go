package cli

import (
	"io"
	"os"
	"strings"
	"testing"

	urfave "github.com/urfave/cli/v2"
)

// TestHelpMayFollowArguments and then nothing else is done.
func TestHelpMayFollowArguments(t *testing.T) {
	for _, line := range []string{"c DATASET --help", "c DATASET -h", "c --help", "c DATASET --on --help"} {
		acted := false
		command := &urfave.Command{Name: "c", Usage: "do it", Flags: []urfave.Flag{&urfave.BoolFlag{Name: "on"}},
			Action: func(c *urfave.Context) error {
				if _, err := Interspersed(c); err != nil {
					return Mistaken(err)
				}
				acted = true
				return nil
			}}
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		before := os.Stdout
		os.Stdout = write
		code := Main("ebpfprof", append([]string{"ebpfprof"}, strings.Fields(line)...), command)
		os.Stdout = before
		write.Close()
		out, err := io.ReadAll(read)
		if err != nil {
			t.Fatal(err)
		}
		if acted || code != ExitOK || !strings.Contains(string(out), "do it") {
			t.Errorf("%s: acted %t, code %d: %s", line, acted, code, out)
		}
	}
}
