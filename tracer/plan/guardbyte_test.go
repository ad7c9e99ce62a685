package plan

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

// guarded is the beginning of a function with a guarded static, as gcc writes
// it, the guard at 0x2000 and the code at 0x1000.
func guarded(leaTo uint64) site.Function {
	code := []byte{0x55, 0x48, 0x89, 0xe5} // push %rbp; mov %rsp,%rbp
	relative := func(target uint64, end int) []byte {
		return binary.LittleEndian.AppendUint32(nil, uint32(int32(int64(target)-int64(0x1000+end))))
	}
	code = append(code, 0x0f, 0xb6, 0x05) // movzbl guard(%rip),%eax
	code = append(code, relative(0x2000, len(code)+4)...)
	code = append(code, 0x84, 0xc0, 0x75, 0x07) // test %al,%al; jne
	code = append(code, 0x48, 0x8d, 0x3d)       // lea guard(%rip),%rdi
	code = append(code, relative(leaTo, len(code)+4)...)
	return site.Function{Address: 0x1000, Code: append(code, 0xc3, 0x90, 0x90, 0x90)}
}

func TestUsedFlagIsTheGuardOfTheFirstStatic(t *testing.T) {
	if got := usedFlag(guarded(0x2000)); got != 0x2000 {
		t.Errorf("guard at %#x, want 0x2000", got)
	}
}

func TestByteThatIsNotPassedToTheGuardFunctionIsNoFlag(t *testing.T) {
	if got := usedFlag(guarded(0x2008)); got != 0 {
		t.Errorf("a byte whose address is not taken counts as guard %#x", got)
	}
}

func TestEveryOperatorOfARealLibraryHasASiteAnEndAndAFlag(t *testing.T) {
	libraries := torchLibraries()
	if len(libraries) == 0 {
		t.Skip("no libtorch_cpu here: make deps torch installs two")
	}
	for build, path := range libraries {
		t.Run(build, func(t *testing.T) {
			e, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			plan := Library(e, path, catalog.Groups())
			operators := 0
			for i := range plan.Probes {
				p := &plan.Probes[i]
				if p.Group.Name != "op" {
					continue
				}
				operators++
				if !strings.HasPrefix(p.Call.Name, "aten::") {
					t.Errorf("%s is called %q", p.Symbol, p.Call.Name)
				}
				if !p.Usable() || p.Entry.Cost != site.CostEmulated {
					t.Errorf("%s: entry %v %v", p.Symbol, p.Entry, p.EntryErr)
				}
				// One function of 1.13 is known to have none (_cudnn_rnn_backward_out).
				if p.ExitErr != nil && !strings.Contains(p.Symbol, "_cudnn_rnn_backward_out") {
					t.Errorf("%s has no exact end: %v", p.Symbol, p.ExitErr)
				}
				if p.UsedFlag == 0 {
					t.Errorf("%s has no guard byte", p.Symbol)
				}
				if p.Return {
					t.Errorf("%s has a return probe: an exception would abort the job", p.Symbol)
				}
			}
			if operators < 2900 {
				t.Errorf("%d operators, want about 3,000", operators)
			}
		})
	}
}

func TestNoReturnProbeOnCxxCode(t *testing.T) {
	for _, g := range catalog.Groups() {
		for _, f := range g.Functions {
			if f.End == spec.Return && strings.HasPrefix(f.Symbol, "_Z") && f.JumpsTo == "" {
				t.Errorf("%s is C++ and would get a return probe", f.Symbol)
			}
		}
	}
}
