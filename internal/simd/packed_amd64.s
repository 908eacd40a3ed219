#include "textflag.h"

// func unpack(row *int8, packed *byte, values *Values, width int)
TEXT ·unpack(SB), NOSPLIT, $0-32
	MOVQ row+0(FP), DI
	MOVQ packed+8(FP), SI
	MOVQ values+16(FP), BX
	MOVQ width+24(FP), CX
	VMOVDQU (BX), X0
	MOVQ $0x0F0F0F0F0F0F0F0F, AX
	VMOVQ AX, X1
	VPUNPCKLQDQ X1, X1, X1

block: // 16 bytes become 32 numbers
	VMOVDQU (SI), X2
	VPAND   X1, X2, X3
	VPSHUFB X3, X0, X3
	VMOVDQU X3, (DI)
	VPSRLW  $4, X2, X2
	VPAND   X1, X2, X2
	VPSHUFB X2, X0, X2
	VMOVDQU X2, 16(DI)
	ADDQ    $16, SI
	ADDQ    $32, DI
	SUBQ    $32, CX
	JGT     block
	RET

// func addPacked(sum *float32, packed *byte, values *Values, scale float32, width int)
TEXT ·addPacked(SB), NOSPLIT, $0-40
	MOVQ sum+0(FP), DI
	MOVQ packed+8(FP), SI
	MOVQ values+16(FP), BX
	VBROADCASTSS scale+24(FP), Y6
	MOVQ width+32(FP), CX
	VMOVDQU (BX), X0
	MOVQ $0x0F0F0F0F0F0F0F0F, AX
	VMOVQ AX, X1
	VPUNPCKLQDQ X1, X1, X1

block: // 16 bytes become 32 numbers, eight of which are added at once
	VMOVDQU   (SI), X2
	VPAND     X1, X2, X3
	VPSHUFB   X3, X0, X3
	VPSRLW    $4, X2, X2
	VPAND     X1, X2, X2
	VPSHUFB   X2, X0, X2
	VPMOVSXBD X3, Y4
	VCVTDQ2PS Y4, Y4
	VMULPS    Y6, Y4, Y4
	VADDPS    (DI), Y4, Y4
	VMOVUPS   Y4, (DI)
	VPSRLDQ   $8, X3, X3
	VPMOVSXBD X3, Y5
	VCVTDQ2PS Y5, Y5
	VMULPS    Y6, Y5, Y5
	VADDPS    32(DI), Y5, Y5
	VMOVUPS   Y5, 32(DI)
	VPMOVSXBD X2, Y4
	VCVTDQ2PS Y4, Y4
	VMULPS    Y6, Y4, Y4
	VADDPS    64(DI), Y4, Y4
	VMOVUPS   Y4, 64(DI)
	VPSRLDQ   $8, X2, X2
	VPMOVSXBD X2, Y5
	VCVTDQ2PS Y5, Y5
	VMULPS    Y6, Y5, Y5
	VADDPS    96(DI), Y5, Y5
	VMOVUPS   Y5, 96(DI)
	ADDQ      $16, SI
	ADDQ      $128, DI
	SUBQ      $32, CX
	JGT       block

	VZEROUPPER
	RET
