package job

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/process"
)

func TestAFileIsNewsOnceUntilItsInodeNumberMayBeAnothers(t *testing.T) {
	f := seenFiles{paths: map[process.FileID]string{}, refused: map[process.FileID]refusal{}}
	key := process.FileID{Inode: 7}
	ask := func(want bool, path string, held bool, freed int) {
		t.Helper()
		if got := f.isNews(key, path, held, freed); got != want {
			t.Fatalf("isNews(%s, held %v, freed %d) = %v", path, held, freed, got)
		}
	}
	ask(true, "a.so", false, 0)
	f.paths[key] = "a.so"
	ask(false, "a.so", false, 3) // it has its probes, or needs none
	ask(false, "b.so", true, 3)  // a hard link: the descriptor keeps the number
	ask(true, "b.so", false, 3)  // another file
	f.refused[key] = refusal{"a.so", 3}
	ask(false, "a.so", false, 3)
	ask(true, "a.so", false, 4) // slots were freed
	if !f.wasRefused(key, "a.so") || f.wasRefused(key, "b.so") {
		t.Fatal("a.so was refused, b.so was not")
	}
	f.keep(map[process.FileID]bool{})
	ask(true, "a.so", false, 4)
	if f.wasRefused(key, "a.so") {
		t.Fatal("a file that is gone keeps its refusal")
	}
}
