#include "textflag.h"

// func clone(flags, number, a, b, c uintptr, result *uintptr) (pid uintptr)
TEXT ·clone(SB), NOSPLIT|NOFRAME, $0-56
	// What the new process needs is in registers that the kernel keeps.
	MOVQ number+8(FP), R12
	MOVQ a+16(FP), R13
	MOVQ b+24(FP), BX
	MOVQ c+32(FP), R9
	MOVQ result+40(FP), R15
	MOVQ flags+0(FP), DI
	XORL SI, SI // the same stack pointer
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	MOVL $56, AX // clone
	SYSCALL
	TESTQ AX, AX
	JEQ  child
	MOVQ AX, pid+48(FP)
	RET

child:
	XORL DI, DI
	XORL SI, SI
	MOVL $109, AX // setpgid
	SYSCALL
	MOVQ R12, AX
	MOVQ R13, DI
	MOVQ BX, SI
	MOVQ R9, DX
	SYSCALL
	MOVQ AX, (R15)
	XORL DI, DI
	MOVL $60, AX // exit
	SYSCALL
	INT  $3
