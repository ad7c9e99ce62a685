package peaks

import (
	"os"
	"strings"
)

// Processor is this machine's, as the kernel names it, "" where it does not.
func Processor() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			switch strings.TrimSpace(key) {
			case "model name", "CPU implementer":
				return strings.TrimSpace(value)
			}
		}
	}
	return ""
}
