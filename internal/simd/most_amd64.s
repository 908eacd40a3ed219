#include "textflag.h"

// func mostRows(table *float32, places *uint32, most *float32, count, groups int)
TEXT ·mostRows(SB), NOSPLIT, $0-40
	MOVQ table+0(FP), SI
	MOVQ places+8(FP), DI
	MOVQ most+16(FP), BX
	MOVQ count+24(FP), CX
	MOVQ groups+32(FP), DX
	MOVQ DX, R8
	SHLQ $4, R8           // bytes of a row

group: // four columns
	VMOVUPS (BX), X0
	XORQ    AX, AX

row: // a number that is none, as the first operand, leaves what is there
	MOVL    (DI)(AX*4), R9
	IMULQ   R8, R9
	VMOVUPS (SI)(R9*1), X1
	VMAXPS  X0, X1, X0
	INCQ    AX
	CMPQ    AX, CX
	JLT     row

	VMOVUPS X0, (BX)
	ADDQ    $16, BX
	ADDQ    $16, SI
	DECQ    DX
	JNZ     group

	RET
