#include "textflag.h"

// func callTimes(code uintptr, times int)
TEXT ·callTimes(SB), NOSPLIT, $256-16
	MOVD code+0(FP), R19
	MOVD times+8(FP), R20
loop:
	BL   (R19)
	SUBS $1, R20, R20
	BNE  loop
	RET
