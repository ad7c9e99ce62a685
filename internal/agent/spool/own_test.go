package spool

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// In another user's directory a window's file may be a link to any file of root's.
func TestASpoolOfAnotherUsersIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give a directory away")
	}
	const nobody = 65534
	spool := filepath.Join(t.TempDir(), "spool")
	roots := filepath.Join(t.TempDir(), "roots")
	if err := os.WriteFile(roots, []byte("contents\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, directory := range []string{spool, filepath.Join(spool, windowsName)} {
		if err := os.Mkdir(directory, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(directory, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(roots, filepath.Join(spool, windowsName, windowFile("77"))); err != nil {
		t.Fatal(err)
	}
	for name, use := range map[string]func() error{
		"the outbox":   func() error { _, err := Outbox(spool); return err },
		"the profiles": func() error { _, err := Profiles(spool); return err },
		"a window":     func() error { return KeepWindow(spool, "77", time.Now()) },
	} {
		if err := use(); err == nil {
			t.Errorf("%s are in nobody's directory", name)
		}
	}
	if content, err := os.ReadFile(roots); err != nil || len(content) != 9 {
		t.Errorf("root's file has %q, %v", content, err)
	}
	// A link in a directory of root's own is not followed either.
	if err := os.Chown(spool, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(spool, windowsName), 0, 0); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1e9, 0)
	if err := KeepWindow(spool, "77", at); err != nil {
		t.Fatal(err)
	}
	if last, err := LastWindow(spool, "77", time.Now()); err != nil || !last.Equal(at) {
		t.Errorf("the last window was at %v, %v", last, err)
	}
	if content, err := os.ReadFile(roots); err != nil || len(content) != 9 {
		t.Errorf("root's file has %q, %v", content, err)
	}
}
