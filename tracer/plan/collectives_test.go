package plan

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// TestCollectivesHaveSitesAndNumbers: in both versions of PyTorch every call of
// torch.distributed has its beginning and its end, and it is known where the group
// keeps its number; NCCL's, which no test here can run, in the wheel's libtorch_cuda.
func TestCollectivesHaveSitesAndNumbers(t *testing.T) {
	libraries := torchLibraries()
	groups := slices.DeleteFunc(catalog.Groups(), func(g spec.Group) bool { return g.Name != "collective" })
	for _, c := range []struct {
		name, path string
		least      int
	}{
		{"gloo of 1.13", libraries["debian"], 20},
		{"gloo of 2.15", libraries["pypi"], 24},
		{"nccl of 2.15", filepath.Join(filepath.Dir(libraries["pypi"]), "libtorch_cuda.so"), 18},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := os.Stat(c.path); err != nil {
				t.Skip("not here: run `make deps torch`")
			}
			file, err := elf.Open(c.path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			plan := Library(file, filepath.Base(c.path), groups)
			if len(plan.Probes) < c.least {
				t.Errorf("%d functions, want at least %d", len(plan.Probes), c.least)
			}
			for i := range plan.Probes {
				p := &plan.Probes[i]
				t.Logf("%-42s %-10s exits %d %v unknown %b tensors %v", p.Call.Name, p.Entry.Cost, len(p.Exits), p.ExitErr, p.Unknown, p.Shapes != nil)
				// Two that 1.13 has only to say that it has not, and one whose end finishWorkGloo tells.
				endless := errors.Is(p.ExitErr, site.ErrNeverReturns) || p.Function.Effect == spec.RunsWork
				if !p.Usable() || p.Function.Action == spec.Span && p.ExitErr != nil && !endless || p.Unknown != 0 {
					t.Errorf("%s: entry %v, exit %v, unknown values %b", p.Symbol, p.EntryErr, p.ExitErr, p.Unknown)
				}
				if p.Function.Share > 0 && p.Shapes == nil {
					t.Errorf("%s: no place for the shapes of its tensors", p.Symbol)
				}
			}
		})
	}
}
