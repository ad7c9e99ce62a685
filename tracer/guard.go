package tracer

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// stripGuard takes the calls of bpf_preempt_disable and bpf_preempt_enable out
// of every program. Kernels below 6.10 do not have them, and looking for a
// missing kfunc costs hundreds of thousands of bpf() calls in the loader. Those
// kernels do not need them either: the private stacks that made preempted
// uprobe programs dangerous came with 6.13.
func stripGuard(spec *ebpf.CollectionSpec) {
	for _, p := range spec.Programs {
		for i := range p.Instructions {
			ins := &p.Instructions[i]
			switch ins.Reference() {
			case "bpf_preempt_disable", "bpf_preempt_enable":
				nop := asm.Mov.Imm(asm.R0, 0)
				nop.Metadata = ins.Metadata
				*ins = nop.WithReference("")
			}
		}
	}
}
