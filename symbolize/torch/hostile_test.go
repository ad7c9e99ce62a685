package torch

import (
	"bytes"
	"strings"
	"testing"
)

// A constant that a user made of what ends a schema, without a NUL, is searched once.
func TestTheSearchForSchemasIsLinear(t *testing.T) {
	for name, data := range map[string][]byte{
		"ends of schemas":   bytes.Repeat([]byte(") -> "), 4<<20),
		"one endless name":  bytes.Repeat([]byte("a"), 16<<20),
		"names and schemas": bytes.Repeat([]byte("a(b) -> \x00"), 2<<20),
		"a long name":       append(append([]byte{0}, bytes.Repeat([]byte("a."), 1<<20)...), "(b) -> c"...),
	} {
		yielded, total := 0, 0
		eachSchema(data, func(s schema) { yielded++; total += len(s.name) })
		if total > len(data) || yielded > len(data)/8 {
			t.Errorf("%s: %d names of %d bytes in %d", name, yielded, total, len(data))
		}
	}
}

func TestLongNamesAreNoClasses(t *testing.T) {
	if _, ok := VTableClass("_ZTV" + strings.Repeat("N1a", 30_000)); ok {
		t.Error("a class of 90,000 characters")
	}
}
