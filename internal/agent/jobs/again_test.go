package jobs

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// mapsLate is told to a process that maps the file of that name once it reads a line.
const mapsLate = "EBPFPROF_TEST_MAPS_LATE"

func TestMain(m *testing.M) {
	if path := os.Getenv(mapsLate); path != "" {
		waitAndMap(path)
	}
	os.Exit(m.Run())
}

func waitAndMap(path string) {
	lines := bufio.NewScanner(os.Stdin)
	lines.Scan()
	f, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	if _, err := unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE); err != nil {
		panic(err)
	}
	fmt.Println("mapped")
	lines.Scan()
	os.Exit(0)
}

// A notebook imports its framework when its user has read the mail.
func TestAProcessThatLoadsItsLibraryLateIsFound(t *testing.T) {
	library := filepath.Join(t.TempDir(), "liblate.so.1")
	if err := os.WriteFile(library, make([]byte, os.Getpagesize()), 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), mapsLate+"="+library, "TORCHELASTIC_RUN_ID=notebook")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	d := New([]string{"liblate.so"}, nil)
	found := func() bool {
		jobs, err := d.Look("")
		if err != nil {
			t.Fatal(err)
		}
		return len(jobs) > 0 && jobs[0].Name == "notebook"
	}
	const before = 720 // an hour
	for range before {
		if found() {
			t.Fatal("found without the library")
		}
	}
	fmt.Fprintln(in, "go")
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "mapped\n" {
		t.Fatalf("%q, %v", line, err)
	}
	for n := range seldom + 1 {
		if found() {
			t.Logf("after %d more looks", n+1)
			return
		}
	}
	t.Errorf("not found within %d looks", seldom+1)
}

func TestAnOldProcessIsLookedAtSeldom(t *testing.T) {
	looks, at := 0, 0
	for at < 17280 { // a day of one each 5 s
		looks++
		at += dueAfter(at)
	}
	if looks > 400 {
		t.Errorf("%d looks a day", looks)
	}
	for age, want := range map[int]int{0: 1, often: 1, often + shareOfAge: 1, 2*shareOfAge + often: 2, 1e6: seldom} {
		if got := dueAfter(age); got != want {
			t.Errorf("after %d looks the next is in %d, want %d", age, got, want)
		}
	}
}
