//go:build libbpf

package libbpf

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// functions are those of a loaded program as the verifier left them, by name: each has its
// instructions with every relocated field, kernel function and variable in them. What differs
// with every load has the name of what it stands for: tables by what they are, functions of the
// program by their names, since the loaders may put them in another order.
func functions(p *ebpf.Program) (map[string]string, error) {
	info, err := p.Info()
	if err != nil {
		return nil, err
	}
	instructions, err := info.Instructions()
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range instructions {
		if f := btf.FuncMetadata(&instructions[i]); f != nil {
			names = append(names, f.Name)
		}
	}
	tables, text, name := map[uint32]string{}, map[string][]string{}, info.Name
	for i := range instructions {
		ins := &instructions[i]
		if f := btf.FuncMetadata(ins); f != nil {
			name = f.Name
		}
		line, err := normal(ins, names, tables)
		if err != nil {
			return nil, err
		}
		text[name] = append(text[name], line)
	}
	sums := map[string]string{}
	for name, lines := range text {
		sums[name] = fmt.Sprintf("%d instructions with sum %x", len(lines), sha256.Sum256([]byte(strings.Join(lines, "\n"))))
	}
	return sums, nil
}

// normal is an instruction without what differs with every load.
func normal(ins *asm.Instruction, names []string, tables map[uint32]string) (string, error) {
	what := ""
	switch {
	case ins.OpCode.IsDWordLoad() && (ins.Src == asm.PseudoMapFD || ins.Src == asm.PseudoMapValue):
		id := uint32(ins.Constant)
		if tables[id] == "" {
			m, err := ebpf.NewMapFromID(ebpf.MapID(id))
			if err != nil {
				return "", err
			}
			tables[id] = describeMap(m)
			m.Close()
		}
		what = fmt.Sprintf("%s at %d", tables[id], ins.Constant>>32)
	case ins.OpCode.IsDWordLoad() && ins.Src == asm.PseudoFunc:
		what = "a function"
	case ins.IsFunctionCall() && ins.Constant >= 0 && int(ins.Constant) < len(names):
		return fmt.Sprintf("%v calls %s", ins.OpCode, names[ins.Constant]), nil
	default:
		what = fmt.Sprint(ins.Constant)
	}
	return fmt.Sprint(ins.OpCode, ins.Dst, ins.Src, ins.Offset, what), nil
}
