package elf

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// resident is how much of a file this process has in memory, in KiB.
func resident(t *testing.T, path string) (kib int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip("no /proc/self/smaps here")
	}
	of := false
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 4 && strings.Contains(fields[0], "-"):
			of = fields[len(fields)-1] == path && fields[1] == "r--s"
		case of && fields[0] == "Rss:":
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			kib += n
		}
	}
	return kib
}

// What a file was read by is given back while it is open, also while somebody reads it,
// and read again afterwards.
func TestAFileThatRestsTakesNoMemoryAndIsReadAgain(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := func() (sum int) {
		for i := 0; i < len(e.data); i += 512 {
			sum += int(e.data[i])
		}
		return sum
	}
	want := sum()
	read := resident(t, path)
	if read < 1000 {
		t.Fatalf("%d KiB of it were read", read)
	}
	Rest()
	if rests := resident(t, path); rests > read/10 {
		t.Errorf("%d KiB of it are in memory, of %d", rests, read)
	}
	over := make(chan bool)
	go func() {
		for range 100 {
			Rest()
			runtime.Gosched()
		}
		close(over)
	}()
	for done := false; !done; {
		select {
		case <-over:
			done = true
		case <-time.After(time.Microsecond):
		}
		if got := sum(); got != want {
			t.Fatalf("it reads as %d, was %d", got, want)
		}
	}
	before := len(mappings.all)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if Rest(); len(mappings.all) != before-1 {
		t.Errorf("%d mappings are known, %d before it was closed", len(mappings.all), before)
	}
}
