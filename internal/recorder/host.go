package recorder

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"strings"
	"time"
)

// newSessionID names a recording: its start, so that ids sort by time, and
// enough chance to tell two hosts apart.
func newSessionID(now time.Time) string {
	var random [5]byte
	rand.Read(random[:])
	return now.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(random[:])
}

func utsString[T int8 | uint8](field []T) string {
	var b strings.Builder
	for _, c := range field {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

// cpuModel is the processor's name as the kernel gives it, "" where it does not.
func cpuModel() string {
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
