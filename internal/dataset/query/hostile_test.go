package query

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/attacker"
)

// within fails the test when f takes longer than any opening does.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("it hangs")
	}
}

func TestWhatIsNoRegularFileIsLeftOutAndNamed(t *testing.T) {
	stolen := filepath.Join(attacker.Directory(t), "d")
	record(t, stolen)
	if err := filepath.Walk(stolen, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, attacker.ID, attacker.ID)
	}); err != nil {
		t.Fatal(err)
	}
	attacker.Do(t, stolen, `mkfifo span/fifo.parquet pipe && ln -s ../pipe span/link.parquet && ln -s /dev/zero span/zero.parquet &&
		mkdir span/directory.parquet && ln -s s1-000001.parquet span/copy.parquet && mkfifo spandex`)
	within(t, func() {
		db := open(t, stolen)
		if got := one(t, db, "SELECT count(*) FROM span"); got != "8" { // the file, and a link to it
			t.Errorf("%s spans", got)
		}
		all := strings.Join(db.Warnings(), "\n")
		for _, name := range []string{"span/fifo.parquet", "span/link.parquet", "span/zero.parquet"} {
			if !strings.Contains(all, "left out "+name+": not a regular file") {
				t.Errorf("no warning says that %s is no file:\n%s", name, all)
			}
		}
		if len(db.Warnings()) != 3 {
			t.Errorf("warnings:\n%s", all)
		}
	})
}

func pidText() string { return strconv.Itoa(os.Getpid()) }

func TestTheDirectoryForSpillingIsOursAlone(t *testing.T) {
	temporary := attacker.Directory(t)
	if err := os.Chmod(temporary, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temporary)
	treasures := t.TempDir()
	attacker.Do(t, temporary, `ln -s "$1" ebpfprof-dataset-$2`, treasures, pidText())
	db := open(t, record(t, filepath.Join(t.TempDir(), "d")))
	spill := one(t, db, "SELECT current_setting('temp_directory')")
	info, err := os.Lstat(spill)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; !info.IsDir() || info.Mode().Perm() != 0o700 || owner != 0 {
		t.Errorf("%s is %v of user %d", spill, info.Mode(), owner)
	}
	if strings.HasSuffix(spill, "-"+pidText()) {
		t.Errorf("%s can be guessed", spill)
	}
	if _, err := db.Run(t.Context(), "SELECT count(*) FROM (SELECT range AS a, hash(range)::VARCHAR AS b FROM range(3000000) "+
		"ORDER BY b)"); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(treasures); len(left) > 0 {
		t.Errorf("written through the attacker's link: %v", left)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(spill); err == nil {
		t.Errorf("%s is still there", spill)
	}
}

func TestWithoutATemporaryDirectoryQueriesRunInMemory(t *testing.T) {
	dataset := record(t, filepath.Join(t.TempDir(), "d"))
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "nowhere"))
	if got := one(t, open(t, dataset), "SELECT count(*) FROM span"); got != "4" {
		t.Errorf("%s spans", got)
	}
}
