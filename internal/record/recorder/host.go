package recorder

import (
	"crypto/rand"
	"encoding/hex"
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
