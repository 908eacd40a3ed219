#include "textflag.h"

// func dotRows(codes *int8, vector *int16, products *int32, rows, width int)
TEXT ·dotRows(SB), NOSPLIT, $0-40
	MOVQ codes+0(FP), SI
	MOVQ vector+8(FP), DI
	MOVQ products+16(FP), BX
	MOVQ rows+24(FP), CX
	MOVQ width+32(FP), DX

row:
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	XORQ  AX, AX

column: // 32 codes become words, and neighbouring products of words one sum each
	VPMOVSXBW (SI)(AX*1), Y2
	VPMADDWD  (DI)(AX*2), Y2, Y2
	VPADDD    Y2, Y0, Y0
	VPMOVSXBW 16(SI)(AX*1), Y3
	VPMADDWD  32(DI)(AX*2), Y3, Y3
	VPADDD    Y3, Y1, Y1
	ADDQ      $32, AX
	CMPQ      AX, DX
	JLT       column

	VPADDD       Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0x4E, X0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0xB1, X0, X1
	VPADDD       X1, X0, X0
	VMOVD        X0, (BX)

	ADDQ DX, SI
	ADDQ $4, BX
	DECQ CX
	JNZ  row

	VZEROUPPER
	RET
