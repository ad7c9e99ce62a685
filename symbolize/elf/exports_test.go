package elf

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
)

// TestExportsOfALibraryAndOfAProgram: of a library what others can call, of a
// program what is in it. The second answer is a kept one.
func TestExportsOfALibraryAndOfAProgram(t *testing.T) {
	library, program := parse(t, testelf.Tiny(t, "tiny.so")), parse(t, testelf.Tiny(t, "tiny.so"))
	program.interpreter = "/lib64/ld-linux-x86-64.so.2"
	for range 2 {
		for name, want := range map[string][2]bool{
			"exported": {true, true}, "schema": {true, true}, "local": {false, true}, "imported": {false, false}, "none": {false, false},
		} {
			if got := [2]bool{library.Exports(name), program.Exports(name)}; got != want {
				t.Errorf("%s: library and program say %v, want %v", name, got, want)
			}
		}
	}
}
