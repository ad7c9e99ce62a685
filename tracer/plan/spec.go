package plan

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

var actions = map[catalog.Action]bpf.CallAction{
	catalog.Span: bpf.CallActionACTION_SPAN, catalog.Event: bpf.CallActionACTION_EVENT,
	catalog.Urgent:     bpf.CallActionACTION_URGENT,
	catalog.ScopeBegin: bpf.CallActionACTION_SCOPE_BEGIN, catalog.ScopeEnd: bpf.CallActionACTION_SCOPE_END,
	catalog.Sequence: bpf.CallActionACTION_SEQUENCE, catalog.RunsPython: bpf.CallActionACTION_PYTHON,
	catalog.Mark: bpf.CallActionACTION_MARK,
}

// registerArgs is how many words of registers lie before those of the stack
// (REGISTER_ARGS, bpf/regs.h).
const registerArgs = 8

// callerWord is where among those words the return address is (CALLER_WORD).
var callerWord = map[elf.Machine]uint8{elf.MachineX86_64: 7, elf.MachineARM64: 15}

// argsInRegisters is how many of the arguments are passed in registers
// (args_in_order, bpf/regs.h).
var argsInRegisters = map[elf.Machine]int{elf.MachineX86_64: 6, elf.MachineARM64: 8}

// inOrder reports whether what is captured is the first arguments in their
// order, none left out and none followed, and perhaps the return address behind
// them: the kernel then need not look where each comes from.
func inOrder(spec *bpf.CallProbeSpec, machine elf.Machine) bool {
	if spec.Flags&uint16(bpf.CallSpecFlagSPEC_FOLLOWS) != 0 || spec.Captures == 0 {
		return false
	}
	last := int(spec.Captures) - 1
	for i, c := range spec.Capture[:last+1] {
		want := i
		if i >= argsInRegisters[machine] {
			want += registerArgs - argsInRegisters[machine]
		}
		if int(c.Index) != want && !(i == last && c.Index == callerWord[machine]) {
			return false
		}
	}
	return true
}

// buildSpec puts a planned probe into the kernel's terms.
func (l *planner) buildSpec(p *Probe) bpf.CallProbeSpec {
	f := p.Function
	spec := bpf.CallProbeSpec{Action: uint8(actions[f.Action]), Captures: uint8(len(f.Values)), TextRegister: f.TextArg}
	if f.End == catalog.ExitSites && p.ExitErr == nil {
		spec.Flags |= uint16(bpf.CallSpecFlagSPEC_HAS_EXIT)
	}
	if p.Return {
		spec.Flags |= uint16(bpf.CallSpecFlagSPEC_HAS_RETURN)
	}
	if f.StatusOK || f.Returns != catalog.FieldNone {
		spec.Flags |= uint16(bpf.CallSpecFlagSPEC_KEEP_RESULT)
	}
	if f.SinceMark {
		spec.Flags |= uint16(bpf.CallSpecFlagSPEC_SINCE_MARK)
	}
	if p.Group.Tier == catalog.Detail {
		spec.Flags |= uint16(bpf.CallSpecFlagSPEC_DETAIL)
	}
	switch {
	case f.Text == catalog.CString:
		spec.Text = uint8(bpf.CallTextKindTEXT_C)
	case f.Text == catalog.CStringLong:
		spec.Text = uint8(bpf.CallTextKindTEXT_C)
		spec.Flags |= uint16(bpf.CallSpecFlagSPEC_LONG_TEXT)
	case f.Text == catalog.Bytes:
		spec.Text = uint8(bpf.CallTextKindTEXT_BLOB)
	case f.Text == catalog.CStringOut:
		spec.Text = uint8(bpf.CallTextKindTEXT_C)
		spec.Flags |= uint16(bpf.CallSpecFlagSPEC_LONG_TEXT | bpf.CallSpecFlagSPEC_TEXT_AT_RETURN)
	case f.Text == catalog.CxxString && strings.Contains(p.Symbol, "NSt7__cxx1112basic_string"):
		spec.Text = uint8(bpf.CallTextKindTEXT_STRING)
	case f.Text == catalog.CxxString:
		spec.Text = uint8(bpf.CallTextKindTEXT_STRING_COW)
	}
	for i, v := range f.Values {
		c := bpf.CallCapture{Source: uint8(bpf.CallSourceSOURCE_REGISTER), Index: v.Index, Derefs: v.Derefs, Offset: v.Offset}
		if v.Stack {
			c.Source, c.Index = uint8(bpf.CallSourceSOURCE_STACK), registerArgs+v.Index
			spec.Flags |= uint16(bpf.CallSpecFlagSPEC_STACK_ARGS)
		}
		if v.Caller {
			c.Source, c.Index = uint8(bpf.CallSourceSOURCE_STACK), callerWord[l.file.Machine()]
			spec.Flags |= uint16(bpf.CallSpecFlagSPEC_STACK_ARGS)
		}
		if v.Derefs > 0 {
			spec.Flags |= uint16(bpf.CallSpecFlagSPEC_FOLLOWS)
		}
		if v.AtReturn {
			spec.Flags |= uint16(bpf.CallSpecFlagSPEC_OUT_ARGS)
			c.Flags |= uint8(bpf.CallCaptureFlagCAPTURE_AT_RETURN)
		}
		if v.Narrow() {
			c.Flags |= uint8(bpf.CallCaptureFlagCAPTURE_NARROW)
		}
		for _, variant := range v.Variants {
			if l.defined[variant.Symbol] {
				c.Offset[v.Derefs-1] = variant.Offset
			}
		}
		if v.Member != "" {
			if place, ok := l.accessors.offset(v.Member); ok {
				c.Offset[0] = place
			} else {
				c.Derefs, p.Unknown = 0, p.Unknown|1<<i
			}
		}
		spec.Capture[i] = c
	}
	if inOrder(&spec, l.file.Machine()) {
		spec.Flags |= uint16(bpf.CallSpecFlagSPEC_IN_ORDER)
	}
	if f.Action == catalog.ScopeEnd && f.Values[0].Derefs == 0 {
		spec.Capture[0].Offset[0] = f.KeyOffset
	}
	return spec
}
