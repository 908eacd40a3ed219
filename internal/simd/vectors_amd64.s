#include "textflag.h"

// func dotVectors(row *int8, vectors *int16, products *int32, groups, width int)
TEXT ·dotVectors(SB), NOSPLIT, $0-40
	MOVQ row+0(FP), SI
	MOVQ vectors+8(FP), DI
	MOVQ products+16(FP), BX
	MOVQ groups+24(FP), CX
	MOVQ width+32(FP), DX

group: // four vectors
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	LEAQ  (DI)(DX*2), R8
	LEAQ  (R8)(DX*2), R9
	LEAQ  (R9)(DX*2), R10
	XORQ  AX, AX

column: // 16 numbers of the row become words, and neighbouring products of words one sum each
	VPMOVSXBW (SI)(AX*1), Y4
	VPMADDWD  (DI)(AX*2), Y4, Y5
	VPADDD    Y5, Y0, Y0
	VPMADDWD  (R8)(AX*2), Y4, Y6
	VPADDD    Y6, Y1, Y1
	VPMADDWD  (R9)(AX*2), Y4, Y7
	VPADDD    Y7, Y2, Y2
	VPMADDWD  (R10)(AX*2), Y4, Y8
	VPADDD    Y8, Y3, Y3
	ADDQ      $16, AX
	CMPQ      AX, DX
	JLT       column

	VPHADDD      Y1, Y0, Y0
	VPHADDD      Y3, Y2, Y2
	VPHADDD      Y2, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VMOVDQU      X0, (BX)

	ADDQ $16, BX
	LEAQ (R10)(DX*2), DI
	DECQ CX
	JNZ  group

	VZEROUPPER
	RET

// func prefetch(data *byte, size int)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVQ data+0(FP), SI
	MOVQ size+8(FP), CX

line:
	PREFETCHT0 (SI)
	ADDQ       $64, SI
	SUBQ       $64, CX
	JGT        line
	RET
