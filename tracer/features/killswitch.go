package features

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The kill switch: with this file there, or this variable set, nothing attaches
// on the machine. The file's first line is the reason that users get to read.
const (
	DisableFile     = "/etc/ebpfprof/disable"
	DisableVariable = "EBPFPROF_DISABLE"
)

// CheckKillSwitch returns an error that wraps ErrNotPermitted when an
// administrator has switched attaching off.
func CheckKillSwitch() error {
	if v := os.Getenv(DisableVariable); v != "" && v != "0" {
		return refuse(ErrNotPermitted, "attaching is switched off: the environment has %s=%s", DisableVariable, v)
	}
	return killSwitch(DisableFile)
}

func killSwitch(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	// A switch that cannot be read is still a switch.
	why, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if why != "" {
		why = " (" + why + ")"
	}
	return refuse(ErrNotPermitted, "attaching is switched off on this machine: %s exists%s", path, why)
}
