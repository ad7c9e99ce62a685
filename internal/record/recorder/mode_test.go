package recorder

import (
	"io/fs"
	"testing"
)

func TestModesAreThoseOfFiles(t *testing.T) {
	for text, want := range map[string]fs.FileMode{"0600": 0o600, "600": 0o600, "0640": 0o640, "0644": 0o644, "0660": 0o660,
		"0640:root": 0o640} {
		a, err := parseMode(text)
		if err != nil || a.Mode != want {
			t.Errorf("%q: %v, %v", text, a.Mode, err)
		}
		if named := text == "0640:root"; (a.GID == 0) != named {
			t.Errorf("%q: group %d", text, a.GID)
		}
	}
	for _, text := range []string{"", "0", "0400", "0700", "0602", "0666", "1640", "rw-r-----", "0640:", "0640:no-such-group"} {
		if a, err := parseMode(text); err == nil {
			t.Errorf("%q is taken for %v", text, a)
		}
	}
}
