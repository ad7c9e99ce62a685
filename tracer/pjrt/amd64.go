package pjrt

import "golang.org/x/arch/x86/x86asm"

// decodeX86 lists what the instructions of a function refer to:
//
//	lea table(%rip), %rax      the table itself
//	mov pointer(%rip), %rax    a slot of the GOT, a variable
//	jmp, jcc, call function    where to look next
//
// Without a frame description the code may run on into the next function; that
// only adds candidates.
func decodeX86(address uint64, code []byte) []reference {
	var found []reference
	for at := 0; at < len(code); {
		i, err := x86asm.Decode(code[at:], 64)
		if err != nil || i.Len == 0 {
			at++
			continue
		}
		at += i.Len
		next := address + uint64(at)
		switch i.Op {
		case x86asm.LEA, x86asm.MOV:
			m, ok := i.Args[1].(x86asm.Mem)
			if _, register := i.Args[0].(x86asm.Reg); !ok || !register || m.Base != x86asm.RIP || i.DataSize != 64 {
				continue
			}
			found = append(found, reference{
				candidate: candidate{next + uint64(m.Disp), i.Op == x86asm.MOV}, data: true,
			})
		default:
			if target, ok := i.Args[0].(x86asm.Rel); ok {
				to := next + uint64(int64(target))
				if to >= address && to < address+uint64(len(code)) {
					continue // inside the function
				}
				found = append(found, reference{candidate: candidate{address: to}, branch: true})
			}
		}
	}
	return found
}
