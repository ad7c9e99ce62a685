package config

import (
	"os"
	"path/filepath"
	"testing"
)

// The agent is root, and its file somebody's: an error, never a crash, and what is
// accepted is within what check allows.
func FuzzReadConfig(f *testing.F) {
	for _, text := range []string{"", "store: /var/lib/x\n", "job: [1, 2]\n", "window: 20s\nspool: {}\n", "a: &a [*a]\n", "store: \x00\n",
		"- - - -\n"} {
		f.Add([]byte(text))
	}
	file := filepath.Join(f.TempDir(), "agent.yaml")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Read(file, nil)
		if err != nil {
			return
		}
		if err := c.check(); err != nil {
			t.Errorf("accepted, and refused when it is looked at again: %v", err)
		}
	})
}
