package bpf

import (
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// StripGuard takes the calls of bpf_preempt_disable and bpf_preempt_enable out
// of every program. Kernels below 6.10 do not have them, and looking for a
// missing kfunc costs hundreds of thousands of bpf() calls in the loader. Those
// kernels do not need them either: the private stacks that made preempted
// uprobe programs dangerous came with 6.13.
func StripGuard(spec *ebpf.CollectionSpec) {
	for _, p := range spec.Programs {
		for i := range p.Instructions {
			ins := &p.Instructions[i]
			switch ins.Reference() {
			case "bpf_preempt_disable", "bpf_preempt_enable":
				// No more than this of its metadata: the rest makes it a call of a
				// kernel function, which the loader refuses of any other instruction.
				nop := asm.Mov.Imm(asm.R0, 0).WithSymbol(ins.Symbol()).WithSource(ins.Source())
				if f := btf.FuncMetadata(ins); f != nil {
					nop = btf.WithFuncMetadata(nop, f)
				}
				*ins = nop
			}
		}
	}
}

// MakeStatic has the verifier look at every function where it is called, and not
// once by itself (verified.h): Linux 6.10 to 6.14 call no global function
// where preemption is off. It looks at three times as many instructions then.
func MakeStatic(spec *ebpf.CollectionSpec) {
	for name, p := range spec.Programs {
		for i := range p.Instructions {
			ins := &p.Instructions[i]
			f := btf.FuncMetadata(ins)
			if f == nil || f.Linkage != btf.GlobalFunc || f.Name == name {
				continue
			}
			static := *f
			static.Linkage = btf.StaticFunc
			*ins = btf.WithFuncMetadata(*ins, &static)
		}
	}
}

// HasGuard reports whether the kernel has the calls that the guard is made of, which
// is found in its type information.
var HasGuard = sync.OnceValue(func() error {
	spec, err := KernelTypes().Kernel()
	if err != nil {
		return fmt.Errorf("reading the kernel's BTF: %w", err)
	}
	var fn *btf.Func
	return spec.TypeByName("bpf_preempt_disable", &fn)
})

// HasGuardedCalls reports whether the kernel calls global functions where preemption
// is off, by loading a program that does. Without the guard it has not.
var HasGuardedCalls = sync.OnceValue(func() error {
	spec, err := LoadAbility()
	if err != nil {
		return fmt.Errorf("reading the programs that try the kernel: %w", err)
	}
	c, err := Load(spec, nil)
	if err != nil {
		return err
	}
	c.Close()
	return nil
})

// Fit makes of a specification what this kernel loads.
func Fit(spec *ebpf.CollectionSpec) {
	switch {
	case HasGuard() != nil:
		StripGuard(spec)
	case HasGuardedCalls() != nil:
		MakeStatic(spec)
	}
}
