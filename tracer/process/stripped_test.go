package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// A program into which CPython was linked and whose symbols are gone has its version where one
// thing alone says it.
func TestAStrippedProgramSaysItsPythonOrThatItDoesNot(t *testing.T) {
	runtime := `__attribute__((section(".PyRuntime"))) unsigned long runtime[3] = {`
	for name, c := range map[string]struct{ source, version, from string }{
		"one constant": {runtime + `1}; const char *a = "3.11.2", *b = "2.5.0";`, "3.11.2", "string"},
		"two":          {runtime + `1}; const char *a = "3.11.2", *b = "3.12.1";`, "", unknownVersion},
		"none":         {runtime + `1}; const char *a = "hello";`, "", unknownVersion},
		"3.13 itself":  {runtime + `0x7970677562656478, 0x030d00f0}; const char *a = "3.11.2";`, "3.13.0", ".PyRuntime"},
		"no Python":    {`const char *a = "3.11.2";`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			source, program := filepath.Join(t.TempDir(), "a.c"), filepath.Join(t.TempDir(), "a.so")
			if err := os.WriteFile(source, []byte(c.source), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("gcc", "-shared", "-s", "-fPIC", "-o", program, source).CombinedOutput(); err != nil {
				t.Skipf("no gcc: %v\n%s", err, out)
			}
			file, err := elf.Open(program)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if version, from, _ := pythonVersion(file, "", maxConstants); version != c.version || from != c.from {
				t.Errorf("version %q from %q, want %q from %q", version, from, c.version, c.from)
			}
		})
	}
}
