//go:build amd64

package plan

import (
	"fmt"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// What Inductor generates is told by what it exports and what its code asks the
// environment for: its path is the job's word.
func TestAKernelIsInductorsByWhatItsLibraryHolds(t *testing.T) {
	const mark = "_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR"
	library := func(function, module, text string) string {
		return fmt.Sprintf(`.globl %[1]s, %[2]s
	.type %[1]s, @function
	.type %[2]s, @function
	.text
%[1]s:	.cfi_startproc
	push %%rbx
	.cfi_def_cfa_offset 16
	test %%rdi, %%rdi
	je 1f
	mov %%rdi, %%rbx
1:	pop %%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size %[1]s, .-%[1]s
%[2]s:	ret
	.size %[2]s, .-%[2]s
	.section .rodata
	.asciz "%[3]s"
`, function, module, text)
	}
	far := func(text string) string {
		return library("kernel", "PyInit_kernel", "") + fmt.Sprintf("\t.zero %d\n\t.asciz \"%s\"\n", maxConstants, text)
	}
	for name, c := range map[string]struct {
		source string
		probes int
	}{
		"inductor":                   {library("kernel", "PyInit_kernel", mark), 1},
		"another's":                  {library("kernel", "PyInit_kernel", "hello"), 0},
		"no module":                  {library("kernel", "PyInit_other", mark), 0},
		"no kernel":                  {library("kernels", "PyInit_kernel", mark), 0},
		"beyond what is searched":    {far(mark), 0},
		"nothing but names":          {library("kernel", "PyInit_kernel", ""), 0},
		"a part of what it asks for": {library("kernel", "PyInit_kernel", mark[1:]), 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := testelf.Assemble(t, c.source)
			e, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			plan := Library(e, path, catalog.Groups())
			if len(plan.Probes) != c.probes {
				t.Fatalf("%d probes, want %d", len(plan.Probes), c.probes)
			}
			for i := range plan.Probes {
				p := &plan.Probes[i]
				if p.Function.Name != spec.FromCaller || p.Call.Category != "fused" || p.EntryErr != nil || p.ExitErr != nil || p.Return {
					t.Errorf("%s is planned as %+v: %v, %v", p.Symbol, p.Call, p.EntryErr, p.ExitErr)
				}
			}
		})
	}
}
