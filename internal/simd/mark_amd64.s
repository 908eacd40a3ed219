#include "textflag.h"

// func mark(numbers *float32, bound float32, marks *uint64, words int) (highest float32)
TEXT ·mark(SB), NOSPLIT, $0-36
	MOVQ numbers+0(FP), SI
	VBROADCASTSS bound+8(FP), Y0
	MOVQ marks+16(FP), DI
	MOVQ words+24(FP), DX
	SHLQ $3, DX              // bytes of marks
	MOVL $0xFF800000, AX     // less than any number
	VMOVD AX, X1
	VPBROADCASTD X1, Y1

byte: // eight numbers; one that is none, as the first operand, leaves the highest
	VMOVUPS (SI), Y2
	VMAXPS Y1, Y2, Y1
	VCMPPS $2, Y2, Y0, Y3    // the bound is at most the number
	VMOVMSKPS Y3, AX
	MOVB AX, (DI)
	ADDQ $32, SI
	INCQ DI
	DECQ DX
	JNZ byte

	VEXTRACTF128 $1, Y1, X2
	VMAXPS X1, X2, X1
	VPSHUFD $0x4E, X1, X2
	VMAXPS X1, X2, X1
	VPSHUFD $0xB1, X1, X2
	VMAXPS X1, X2, X1
	VZEROUPPER
	MOVSS X1, highest+32(FP)
	RET
