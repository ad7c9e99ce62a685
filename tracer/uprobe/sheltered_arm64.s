#include "textflag.h"

// func clone(flags, number, a, b, c uintptr, result *uintptr) (pid uintptr)
TEXT ·clone(SB), NOSPLIT|NOFRAME, $0-56
	// What the new process needs is in registers that the kernel keeps.
	MOVD number+8(FP), R9
	MOVD a+16(FP), R10
	MOVD b+24(FP), R11
	MOVD c+32(FP), R12
	MOVD result+40(FP), R13
	MOVD flags+0(FP), R0
	MOVD ZR, R1 // the same stack pointer
	MOVD ZR, R2
	MOVD ZR, R3
	MOVD ZR, R4
	MOVD $220, R8 // clone
	SVC
	CBZ  R0, child
	MOVD R0, pid+48(FP)
	RET

child:
	MOVD ZR, R0
	MOVD ZR, R1
	MOVD $154, R8 // setpgid
	SVC
	MOVD R9, R8
	MOVD R10, R0
	MOVD R11, R1
	MOVD R12, R2
	SVC
	MOVD R0, (R13)
	MOVD ZR, R0
	MOVD $93, R8 // exit
	SVC
	BRK
