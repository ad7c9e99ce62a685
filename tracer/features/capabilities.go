package features

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// CheckPermitted returns an error that wraps ErrNotPermitted and names the
// capabilities that are missing.
func CheckPermitted() error {
	missing, err := MissingCapabilities(nil)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: this process lacks %s; run it with sudo", ErrNotPermitted, strings.Join(missing, ", "))
	}
	return nil
}

// capability numbers from include/uapi/linux/capability.h.
var neededCapabilities = []struct {
	bit  uint
	name string
	why  string
	perf bool // needed only to attach through perf events
}{
	{39, "CAP_BPF", "to load programs", false},
	{38, "CAP_PERFMON", "to attach probes", false},
	{19, "CAP_SYS_PTRACE", "to read the maps of other processes", false},
	{21, "CAP_SYS_ADMIN", "to attach perf uprobes, since this kernel has no uprobe.multi", true},
}

// MissingCapabilities names the capabilities that this process lacks, with
// what each is for.
func MissingCapabilities(can *Set) ([]string, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, fmt.Errorf("reading this process's capabilities: %w", err)
	}
	effective, err := effectiveCapabilities(string(status))
	if err != nil {
		return nil, err
	}
	const sysAdmin = 1 << 21 // stands in for CAP_BPF and CAP_PERFMON
	var missing []string
	for _, c := range neededCapabilities {
		if c.perf && (can == nil || can.UprobeMulti) {
			continue
		}
		if effective&(1<<c.bit) != 0 || (c.bit >= 38 && effective&sysAdmin != 0) {
			continue
		}
		missing = append(missing, fmt.Sprintf("%s (%s)", c.name, c.why))
	}
	return missing, nil
}

func effectiveCapabilities(status string) (caps uint64, err error) {
	for line := range strings.Lines(status) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			_, err := fmt.Sscanf(strings.TrimSpace(hex), "%x", &caps)
			return caps, err
		}
	}
	return 0, errors.New("no CapEff line in the process status")
}
