// Package testfile writes the files that tests read.
package testfile

import (
	"os"
	"path/filepath"
	"testing"
)

// Write writes a file that only its owner may read, makes the directories above it, and
// returns its name.
func Write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
