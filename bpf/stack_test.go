package bpf

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// mostStack is what the functions that call one another may take of a program's stack
// together: 512 bytes, each function's share rounded up to 32 (check_max_stack_depth of
// Linux 6.1; later kernels round to 16, or give each function a stack of its own).
const (
	mostStack    = 512
	stackRounded = 32
)

// function is a part of a program: how much of the stack it takes itself, and whom it
// calls, callbacks of helpers among them.
type function struct {
	stack int
	calls []string
}

// functions takes a program's instructions apart.
func functions(instructions asm.Instructions) (first string, all map[string]*function) {
	all = map[string]*function{}
	var f *function
	copies := map[asm.Register]bool{} // of the frame pointer
	for _, ins := range instructions {
		if name := ins.Symbol(); name != "" && (f == nil || !strings.HasPrefix(name, "LBB")) {
			if f = (&function{}); first == "" {
				first = name
			}
			all[name] = f
			clear(copies)
		}
		switch class := ins.OpCode.Class(); {
		case ins.IsFunctionCall(), ins.IsLoadOfFunctionPointer():
			f.calls = append(f.calls, ins.Reference())
		case class == asm.LdXClass && ins.Src == asm.R10, (class == asm.StXClass || class == asm.StClass) && ins.Dst == asm.R10:
			f.stack = max(f.stack, -int(ins.Offset))
		case class.IsALU() && ins.OpCode.ALUOp() == asm.Mov && ins.OpCode.Source() == asm.RegSource:
			copies[ins.Dst] = ins.Src == asm.R10
		case class.IsALU() && ins.OpCode.ALUOp() == asm.Add && ins.OpCode.Source() == asm.ImmSource && copies[ins.Dst]:
			f.stack = max(f.stack, -int(ins.Constant))
			copies[ins.Dst] = false
		}
	}
	return first, all
}

// deepest is the longest way down from a function, in bytes and in words.
func deepest(all map[string]*function, name string) (bytes int, chain string) {
	f := all[name]
	if f == nil {
		return 0, ""
	}
	for _, callee := range f.calls {
		if b, c := deepest(all, callee); b > bytes {
			bytes, chain = b, c
		}
	}
	own := (max(f.stack, 1) + stackRounded - 1) / stackRounded * stackRounded
	return bytes + own, strings.TrimSpace(fmt.Sprintf("%s %d %s", name, own, chain))
}

// TestNoProgramTakesMoreStackThanOldKernelsHave: this kernel may give more than Linux 6.1
// does, which refuses a program for eight bytes. The other architecture's objects are looked
// at too: its compiled functions take other shares.
func TestNoProgramTakesMoreStackThanOldKernelsHave(t *testing.T) {
	objects, err := filepath.Glob("*_bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, object := range objects {
		spec, err := ebpf.LoadCollectionSpec(object)
		if err != nil {
			t.Fatal(err)
		}
		for name, p := range spec.Programs {
			first, all := functions(p.Instructions)
			bytes, chain := deepest(all, first)
			checked++
			t.Logf("%s: %s: %d bytes: %s", object, name, bytes, chain)
			if bytes > mostStack {
				t.Errorf("%s: %s takes %d bytes of stack, %d more than Linux 6.1 gives: %s", object, name, bytes, bytes-mostStack, chain)
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d programs were looked at", checked)
	}
}
