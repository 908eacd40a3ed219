#include "textflag.h"

// func join(row *int8, upper, lower *byte, width int)
TEXT ·join(SB), NOSPLIT, $0-32
	MOVQ row+0(FP), DI
	MOVQ upper+8(FP), SI
	MOVQ lower+16(FP), BX
	MOVQ width+24(FP), CX
	MOVQ $0x0F0F0F0F0F0F0F0F, AX
	VMOVQ AX, X0
	VPBROADCASTQ X0, Y0
	MOVQ $0x8080808080808080, AX
	VMOVQ AX, X1
	VPBROADCASTQ X1, Y1

block: // 32 bytes of either become 64 numbers
	VMOVDQU (SI), Y2
	VMOVDQU (BX), Y3
	VPAND   Y0, Y2, Y4
	VPSLLW  $4, Y4, Y4
	VPAND   Y0, Y3, Y5
	VPOR    Y5, Y4, Y4
	VPXOR   Y1, Y4, Y4
	VMOVDQU Y4, (DI)
	VPANDN  Y2, Y0, Y4
	VPSRLW  $4, Y3, Y5
	VPAND   Y0, Y5, Y5
	VPOR    Y5, Y4, Y4
	VPXOR   Y1, Y4, Y4
	VMOVDQU Y4, 32(DI)
	ADDQ    $32, SI
	ADDQ    $32, BX
	ADDQ    $64, DI
	SUBQ    $64, CX
	JGT     block

	VZEROUPPER
	RET

// func dotHalves(halves *byte, vector *int8, products *int32, rows, width int)
TEXT ·dotHalves(SB), NOSPLIT, $0-40
	MOVQ halves+0(FP), SI
	MOVQ vector+8(FP), DI
	MOVQ products+16(FP), BX
	MOVQ rows+24(FP), CX
	MOVQ width+32(FP), DX
	MOVQ $0x0F0F0F0F0F0F0F0F, AX
	VMOVQ AX, X6
	VPBROADCASTQ X6, Y6
	MOVQ $0x0001000100010001, AX
	VMOVQ AX, X7
	VPBROADCASTQ X7, Y7

row:
	VPXOR Y0, Y0, Y0
	XORQ  AX, AX

column: // sums of four products of 15 * 127 at most fit into 16 bits
	VMOVDQU    (SI), Y1
	VPAND      Y6, Y1, Y2
	VPMADDUBSW (DI)(AX*1), Y2, Y2
	VPSRLW     $4, Y1, Y1
	VPAND      Y6, Y1, Y1
	VPMADDUBSW 32(DI)(AX*1), Y1, Y1
	VPADDW     Y1, Y2, Y2
	VPMADDWD   Y7, Y2, Y2
	VPADDD     Y2, Y0, Y0
	ADDQ       $32, SI
	ADDQ       $64, AX
	CMPQ       AX, DX
	JLT        column

	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0x4E, X0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0xB1, X0, X1
	VPADDD       X1, X0, X0
	VMOVD        X0, (BX)

	ADDQ $4, BX
	DECQ CX
	JNZ  row

	VZEROUPPER
	RET
