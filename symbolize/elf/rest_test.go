package elf

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

// openOwn opens the test's own program.
func openOwn(t *testing.T) (e *File, path string) {
	t.Helper()
	path, err := os.Executable()
	if err == nil {
		e, err = Open(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e, path
}

// touch reads all pages of a file, and adds up what it reads.
func touch(e *File) (sum int) {
	for i := 0; i < len(e.data); i += 512 {
		sum += int(e.data[i])
	}
	return sum
}

// What a file was read by is given back while it is open, also while somebody reads it,
// and read again afterwards.
func TestAFileThatRestsTakesNoMemoryAndIsReadAgain(t *testing.T) {
	e, path := openOwn(t)
	want := touch(e)
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
		if got := touch(e); got != want {
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

// What is read a little at a time stays until it is much.
func TestMuchIsGivenBackAndLittleStays(t *testing.T) {
	e, path := openOwn(t)
	defer e.Close()
	Rest()
	sum := touch(e)
	read := resident(t, path)
	RestAfter(int64(len(e.data)) + 64<<20)
	if left := resident(t, path); left < read*9/10 || read < 1000 || sum == 0 {
		t.Errorf("%d KiB are left of %d, within the room", left, read)
	}
	RestAfter(int64(read) << 10 / 4)
	if left := resident(t, path); left > read/10 {
		t.Errorf("%d KiB are left of %d, beyond the room", left, read)
	}
	before := rested.Load()
	if RestAfter(1 << 40); rested.Load() != before {
		t.Error("what was left is measured anew without a rest")
	}
}

// Who reads all over a large file has little of it in memory at once, and what little files
// leave stays: to read pages again that others are at work with costs them time.
func TestSparingGivesPagesBackWhileTheyAreRead(t *testing.T) {
	const size, room = 256 << 20, sparingRoom + 96<<20
	f, err := os.Create(filepath.Join(t.TempDir(), "large"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	release := keep(data)
	defer release()
	before, err := mapped()
	if err != nil {
		t.Skip("no /proc/self/statm here")
	}
	most, sum := before, 0
	read := func(length int) {
		for at := 0; at < length; at += 4096 {
			if sum += int(data[at]); at%(1<<20) == 0 {
				time.Sleep(2 * time.Millisecond)
				if now, err := mapped(); err == nil {
					most = max(most, now)
				}
			}
		}
	}
	Sparing(func() { read(size) })
	if after, _ := mapped(); most > before+room || after > before+sparingRoom/2 {
		t.Errorf("%d MiB at the most and %d afterwards, of %d that were read", (most-before)>>20, (after-before)>>20, size>>20)
	}
	Rest()
	Sparing(func() { read(sparingRoom / 8) })
	if after, _ := mapped(); after < before+sparingRoom/16 {
		t.Errorf("%d KiB are left of a little file", (after-before)>>10)
	}
}
