#include "textflag.h"

// func callTimes(code uintptr, times int)
//
// Calls a leaf function of the platform's ABI that touches nothing but its
// own few bytes of stack.
TEXT ·callTimes(SB), NOSPLIT, $256-16
	MOVQ code+0(FP), R12
	MOVQ times+8(FP), R13
loop:
	CALL R12
	DECQ R13
	JNZ  loop
	RET
