package plan

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// TestWhereFunctionsOfPythonHaveTheirName: in both versions of PyTorch both halves of a
// torch.autograd.Function have a beginning and an end, and it is known where the backward
// node has the object whose class names it: read with objdump from PyNode::name().
func TestWhereFunctionsOfPythonHaveTheirName(t *testing.T) {
	libraries := torchLibraries()
	groups := slices.DeleteFunc(catalog.Groups(), func(g spec.Group) bool { return g.Name != "function" })
	for version, place := range map[string]int16{"debian": 0x188, "pypi": 0x70} {
		t.Run(version, func(t *testing.T) {
			directory := filepath.Dir(libraries[version])
			found, _ := filepath.Glob(filepath.Join(directory, "libtorch_python.so*"))
			if len(found) == 0 {
				t.Skip("not here: run `make deps torch`")
			}
			path := found[0]
			if target, err := filepath.EvalSymlinks(path); err == nil {
				path = target
			}
			if _, err := os.Stat(path); err != nil {
				t.Fatal(err)
			}
			file, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			places := map[string][2]int16{}
			for _, p := range Library(file, filepath.Base(path), groups).Probes {
				if !p.Usable() || p.ExitErr != nil || p.Unknown != 0 {
					t.Errorf("%s: entry %v, exit %v, unknown values %b", p.Symbol, p.EntryErr, p.ExitErr, p.Unknown)
				}
				places[p.Call.Name] = p.Spec.Capture[0].Offset
			}
			if len(places) != 2 || places["PyNode::apply"] != [2]int16{place, 8} {
				t.Errorf("functions, and where their class is: %v", places)
			}
		})
	}
}
