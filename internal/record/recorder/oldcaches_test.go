package recorder

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOldCachesAreThrownAwayWithAWord(t *testing.T) {
	user := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", user)
	plans := filepath.Join(user, "ebpfprof", "plans")
	if err := os.MkdirAll(plans, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(plans, name), []byte("a plan"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := func() string {
		var b bytes.Buffer
		throwOldCaches(&b)
		return b.String()
	}
	left := func() (names []string) {
		entries, _ := os.ReadDir(plans)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	unstamped := filepath.Join(user, "ebpfprof", "unwind")
	write("poisoned")
	write("another")
	if text := said(); !strings.Contains(text, "threw 2 files") || strings.Count(text, "\n") != 1 {
		t.Errorf("said %q", text)
	}
	if _, err := os.Stat(filepath.Join(unstamped, formatFile)); err != nil {
		t.Errorf("a new cache has no format: %v", err)
	}
	if names := left(); len(names) != 1 || names[0] != formatFile {
		t.Errorf("left are %q", names)
	}
	write("ours")
	if text := said(); text != "" || len(left()) != 2 {
		t.Errorf("of its own format, said %q, left %q", text, left())
	}
	if err := os.WriteFile(filepath.Join(plans, formatFile), []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := said(); !strings.Contains(text, "threw 1 file of") || len(left()) != 1 {
		t.Errorf("of an older format, said %q, left %q", text, left())
	}
	if err := os.Chmod(plans, 0o777); err != nil {
		t.Fatal(err)
	}
	write("anybody's")
	if text := said(); !strings.Contains(text, "is not used") || len(left()) != 2 {
		t.Errorf("that others can write, said %q, left %q", text, left())
	}
}
