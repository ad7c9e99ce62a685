package elf

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
)

func TestAFileWithoutABuildIDHasAnIDOfItsContents(t *testing.T) {
	with := parse(t, testelf.Tiny(t, "tiny.so"))
	if with.FileID() != with.BuildID() {
		t.Errorf("%s, build id %s", with.FileID(), with.BuildID())
	}
	path := testelf.Assemble(t, ".text\nnop\n", "-Wl,--build-id=none")
	e := open(t, path)
	id := e.FileID()
	if e.BuildID() != "" || len(id) != len("file-")+32 || id != open(t, path).FileID() {
		t.Errorf("build id %q, file id %q", e.BuildID(), id)
	}
	if other := open(t, testelf.Assemble(t, ".text\nnop; nop\n", "-Wl,--build-id=none")).FileID(); other == id {
		t.Errorf("two files are %s", id)
	}
}
