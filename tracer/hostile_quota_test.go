package tracer

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
)

// A user maps more different files than its share of the unwind tables: those beyond
// have none, which is said, and the other job goes on.
func TestFilesBeyondAShareOfTheUnwindTablesAreAProcesssOwnLoss(t *testing.T) {
	needKernel(t)
	dir := forAll(t)
	const share, beyond = 4094 / 4, 400
	contents := testelf.Tiny(t, "tiny.so")
	for i := range share + beyond {
		different := append(contents[:len(contents):len(contents)], fmt.Sprint(i)...)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("lib%d.so", i)), different, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	attacker, _ := crowd(t, dir, share+beyond, filepath.Join(dir, "lib%d.so"))
	for _, w := range recordBeside(t, attacker) {
		if w.Source == "unwind_quota" {
			if w.Count < beyond || w.Count > beyond+20 {
				t.Errorf("%d files without a table, want %d and a few of the system's", w.Count, beyond)
			}
			return
		}
	}
	t.Error("nothing is said of the files beyond the share")
}
