#include "textflag.h"

// Places of the first, second and third words of eight rows of three words, among those in the first two of three
// registers, and then among those and the ones in the third.
DATA first2<>+0(SB)/8, $0
DATA first2<>+8(SB)/8, $3
DATA first2<>+16(SB)/8, $6
DATA first2<>+24(SB)/8, $9
DATA first2<>+32(SB)/8, $12
DATA first2<>+40(SB)/8, $15
DATA first2<>+48(SB)/8, $0
DATA first2<>+56(SB)/8, $0
GLOBL first2<>(SB), RODATA|NOPTR, $64

DATA first3<>+0(SB)/8, $0
DATA first3<>+8(SB)/8, $1
DATA first3<>+16(SB)/8, $2
DATA first3<>+24(SB)/8, $3
DATA first3<>+32(SB)/8, $4
DATA first3<>+40(SB)/8, $5
DATA first3<>+48(SB)/8, $10
DATA first3<>+56(SB)/8, $13
GLOBL first3<>(SB), RODATA|NOPTR, $64

DATA second2<>+0(SB)/8, $1
DATA second2<>+8(SB)/8, $4
DATA second2<>+16(SB)/8, $7
DATA second2<>+24(SB)/8, $10
DATA second2<>+32(SB)/8, $13
DATA second2<>+40(SB)/8, $0
DATA second2<>+48(SB)/8, $0
DATA second2<>+56(SB)/8, $0
GLOBL second2<>(SB), RODATA|NOPTR, $64

DATA second3<>+0(SB)/8, $0
DATA second3<>+8(SB)/8, $1
DATA second3<>+16(SB)/8, $2
DATA second3<>+24(SB)/8, $3
DATA second3<>+32(SB)/8, $4
DATA second3<>+40(SB)/8, $8
DATA second3<>+48(SB)/8, $11
DATA second3<>+56(SB)/8, $14
GLOBL second3<>(SB), RODATA|NOPTR, $64

DATA third2<>+0(SB)/8, $2
DATA third2<>+8(SB)/8, $5
DATA third2<>+16(SB)/8, $8
DATA third2<>+24(SB)/8, $11
DATA third2<>+32(SB)/8, $14
DATA third2<>+40(SB)/8, $0
DATA third2<>+48(SB)/8, $0
DATA third2<>+56(SB)/8, $0
GLOBL third2<>(SB), RODATA|NOPTR, $64

DATA third3<>+0(SB)/8, $0
DATA third3<>+8(SB)/8, $1
DATA third3<>+16(SB)/8, $2
DATA third3<>+24(SB)/8, $3
DATA third3<>+32(SB)/8, $4
DATA third3<>+40(SB)/8, $9
DATA third3<>+48(SB)/8, $12
DATA third3<>+56(SB)/8, $15
GLOBL third3<>(SB), RODATA|NOPTR, $64

// func sift(rows *byte, groups int, s *Sieve, marks *byte)
TEXT ·sift(SB), NOSPLIT, $0-32
	MOVQ rows+0(FP), SI
	MOVQ groups+8(FP), CX
	MOVQ s+16(FP), BX
	MOVQ marks+24(FP), DI
	VMOVDQU64 first2<>(SB), Z20
	VMOVDQU64 first3<>(SB), Z21
	VMOVDQU64 second2<>(SB), Z22
	VMOVDQU64 second3<>(SB), Z23
	VMOVDQU64 third2<>(SB), Z24
	VMOVDQU64 third3<>(SB), Z25
	VPBROADCASTQ 0(BX), Z10  // the words
	VPBROADCASTQ 8(BX), Z11
	VPBROADCASTQ 16(BX), Z12 // the whole
	VPBROADCASTQ 24(BX), Z13 // what is added
	VPBROADCASTQ 32(BX), Z14 // facts
	LEAQ 40(BX), R8          // needs
	MOVQ $7, AX
	VPBROADCASTQ AX, Z15
	MOVQ $0x1FF, AX
	VPBROADCASTQ AX, Z16
	MOVQ $0x200, AX
	VPBROADCASTQ AX, Z17
	MOVQ $0xFF, AX
	VPBROADCASTQ AX, Z18
	MOVQ $0xFFFFFFFF, AX
	VPBROADCASTQ AX, Z19

group: // eight rows
	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQA64 Z0, Z3
	VMOVDQA64 Z0, Z4
	VPERMT2Q Z1, Z20, Z3
	VPERMT2Q Z2, Z21, Z3 // the first words
	VPERMT2Q Z1, Z22, Z4
	VPERMT2Q Z2, Z23, Z4 // the second ones
	VPERMT2Q Z1, Z24, Z0
	VPERMT2Q Z2, Z25, Z0 // the third ones
	VPANDQ Z10, Z3, Z3
	VPANDQ Z11, Z4, Z4
	VPOPCNTQ Z3, Z3
	VPOPCNTQ Z4, Z4
	VPADDQ Z3, Z4, Z4
	VPADDQ Z13, Z4, Z4
	VPSRLQ $32, Z0, Z5 // the kind
	VPANDQ Z16, Z5, Z5
	VPSRLQ $47, Z0, Z6
	VPANDQ Z17, Z6, Z6
	VPORQ Z6, Z5, Z5
	VPSRLQ $48, Z0, Z6 // facts
	VPANDQ Z18, Z6, Z6
	VPMAXSQ Z14, Z6, Z6
	VPMINSQ Z15, Z6, Z6
	VPSLLQ $10, Z6, Z6
	VPORQ Z6, Z5, Z5
	KXNORB K1, K1, K1
	VPGATHERQD (R8)(Z5*4), K1, Y6
	VPMOVSXDQ Y6, Z6
	VPCMPQ $5, Z6, Z4, K2 // at least
	VPANDQ Z19, Z0, Z0
	VPCMPEQQ Z12, Z0, K3
	KORB K2, K3, K2
	KMOVB K2, AX
	MOVB AX, (DI)
	ADDQ $192, SI
	INCQ DI
	DECQ CX
	JNZ group

	VZEROUPPER
	RET
