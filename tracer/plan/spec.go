package plan

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

var actions = map[spec.Action]bpf.CallAction{
	spec.Span: bpf.CallActionACTION_SPAN, spec.Event: bpf.CallActionACTION_EVENT,
	spec.Urgent:     bpf.CallActionACTION_URGENT,
	spec.ScopeBegin: bpf.CallActionACTION_SCOPE_BEGIN, spec.ScopeEnd: bpf.CallActionACTION_SCOPE_END,
	spec.Sequence: bpf.CallActionACTION_SEQUENCE, spec.RunsPython: bpf.CallActionACTION_PYTHON,
	spec.Mark: bpf.CallActionACTION_MARK, spec.Timed: bpf.CallActionACTION_TIMED, spec.Instant: bpf.CallActionACTION_INSTANT,
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
func inOrder(wire *bpf.CallProbeSpec, machine elf.Machine) bool {
	if wire.Flags&uint16(bpf.CallSpecFlagSPEC_FOLLOWS) != 0 || wire.Captures == 0 {
		return false
	}
	last := int(wire.Captures) - 1
	for i, c := range wire.Capture[:last+1] {
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
	wire := bpf.CallProbeSpec{Action: uint8(actions[f.Action]), Captures: uint8(len(f.Values)), TextRegister: f.TextArg}
	if f.End == spec.ExitSites && p.ExitErr == nil {
		wire.Flags |= uint16(bpf.CallSpecFlagSPEC_HAS_EXIT)
	}
	switch {
	case p.Return:
		wire.Flags |= uint16(bpf.CallSpecFlagSPEC_HAS_RETURN)
	case f.Action == spec.Timed:
		wire.Action = uint8(bpf.CallActionACTION_EVENT)
	}
	if p.ResultSeen || f.StatusOK || f.Returns != spec.FieldNone {
		wire.Flags |= uint16(bpf.CallSpecFlagSPEC_KEEP_RESULT)
	}
	if f.Python {
		wire.Flags |= uint16(bpf.CallSpecFlagSPEC_PYTHON)
	}
	if f.SinceMark {
		wire.Flags |= uint16(bpf.CallSpecFlagSPEC_SINCE_MARK)
	}
	if p.Group.Tier == spec.Detail {
		wire.Flags |= uint16(bpf.CallSpecFlagSPEC_DETAIL)
	}
	if f.Asked != nil && f.Asked.Strings() != 0 {
		wire.Text, wire.TextRegister = uint8(bpf.CallTextKindTEXT_EACH), f.Asked.Strings()
	}
	switch {
	case f.Text == spec.CString:
		wire.Text = uint8(bpf.CallTextKindTEXT_C)
	case f.Text == spec.CStringLong:
		wire.Text = uint8(bpf.CallTextKindTEXT_C)
		wire.Flags |= uint16(bpf.CallSpecFlagSPEC_LONG_TEXT)
	case f.Text == spec.Bytes:
		wire.Text = uint8(bpf.CallTextKindTEXT_BLOB)
	case f.Text == spec.CStringOut:
		wire.Text = uint8(bpf.CallTextKindTEXT_C)
		wire.Flags |= uint16(bpf.CallSpecFlagSPEC_LONG_TEXT | bpf.CallSpecFlagSPEC_TEXT_AT_RETURN)
	case f.Text == spec.PythonType:
		wire.Text = uint8(bpf.CallTextKindTEXT_PYTHON_TYPE)
	case f.Text == spec.CxxString && strings.Contains(p.Symbol, "NSt7__cxx1112basic_string"):
		wire.Text = uint8(bpf.CallTextKindTEXT_STRING)
	case f.Text == spec.CxxString:
		wire.Text = uint8(bpf.CallTextKindTEXT_STRING_COW)
	}
	for i, v := range f.Values {
		c := bpf.CallCapture{Source: uint8(bpf.CallSourceSOURCE_REGISTER), Index: v.Index, Derefs: v.Derefs, Offset: v.Offset}
		if f.Action == spec.Instant {
			c.Source = uint8(bpf.CallSourceSOURCE_CONTEXT)
		}
		if v.Stack {
			c.Source, c.Index = uint8(bpf.CallSourceSOURCE_STACK), registerArgs+v.Index
			wire.Flags |= uint16(bpf.CallSpecFlagSPEC_STACK_ARGS)
		}
		if v.Caller {
			c.Source, c.Index = uint8(bpf.CallSourceSOURCE_STACK), callerWord[l.file.Machine()]
			wire.Flags |= uint16(bpf.CallSpecFlagSPEC_STACK_ARGS)
		}
		if v.Delay {
			c = bpf.CallCapture{Flags: uint8(bpf.CallCaptureFlagCAPTURE_DELAY)}
		}
		if v.Derefs > 0 || v.Delay {
			wire.Flags |= uint16(bpf.CallSpecFlagSPEC_FOLLOWS)
		}
		if v.AtReturn {
			wire.Flags |= uint16(bpf.CallSpecFlagSPEC_OUT_ARGS)
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
				if f.Text == spec.PythonType && int(f.TextArg) == i {
					wire.Text = uint8(bpf.CallTextKindTEXT_NONE)
				}
			}
		}
		wire.Capture[i] = c
	}
	if f.Action != spec.Instant && inOrder(&wire, l.file.Machine()) {
		wire.Flags |= uint16(bpf.CallSpecFlagSPEC_IN_ORDER)
	}
	if f.Action == spec.ScopeEnd && f.Values[0].Derefs == 0 {
		wire.Capture[0].Offset[0] = f.KeyOffset
	}
	return wire
}
