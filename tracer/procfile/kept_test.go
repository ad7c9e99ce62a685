package procfile

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

func TestAKeptFileSaysWhatItSaysNow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if _, err := Keep(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no file: %v", err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("1 2\n")
	k, err := Keep(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 2", "33"} {
		write(want + "\n")
		if got := k.Line(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

// What was opened of a process that has ended says nothing, whoever has its number now.
func TestAKeptFileOfAProcessThatEndedIsEmpty(t *testing.T) {
	sleeping := exec.Command("sleep", "1000")
	if err := sleeping.Start(); err != nil {
		t.Fatal(err)
	}
	k, err := Keep("/proc/" + strconv.Itoa(sleeping.Process.Pid) + "/statm")
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if k.Line() == "" {
		t.Error("nothing of a process that lives")
	}
	sleeping.Process.Kill()
	sleeping.Wait()
	if got := k.Line(); got != "" {
		t.Errorf("%q of a process that has ended", got)
	}
}
