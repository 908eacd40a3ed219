#include "textflag.h"

// How many bits of each nibble are 1.
DATA nibbles<>+0(SB)/8, $0x0302020102010100
DATA nibbles<>+8(SB)/8, $0x0403030203020201
DATA nibbles<>+16(SB)/8, $0x0302020102010100
DATA nibbles<>+24(SB)/8, $0x0403030203020201
GLOBL nibbles<>(SB), RODATA|NOPTR, $32

// Where each of eight rows is, after the first four went to the lower halves of words and the others to the upper ones,
// in the order of FOUR.
DATA order<>+0(SB)/4, $0
DATA order<>+4(SB)/4, $6
DATA order<>+8(SB)/4, $4
DATA order<>+12(SB)/4, $2
DATA order<>+16(SB)/4, $1
DATA order<>+20(SB)/4, $7
DATA order<>+24(SB)/4, $5
DATA order<>+28(SB)/4, $3
GLOBL order<>(SB), RODATA|NOPTR, $32

// BITS replaces each byte of a register by how many of its bits are 1.
#define BITS(X, T) \
	VPSRLW  $4, X, T   \
	VPAND   Y8, X, X   \
	VPAND   Y8, T, T   \
	VPSHUFB X, Y9, X   \
	VPSHUFB T, Y9, T   \
	VPADDB  T, X, X

// FOUR reads four rows. It leaves how many bits they have in common with the sieve in COMMON, and their third words in
// THIRD, in the order 0, 3, 2, 1.
#define FOUR(AT, COMMON, THIRD) \
	VMOVDQU  AT(SI), Y0                \
	VMOVDQU  AT+32(SI), Y1             \
	VMOVDQU  AT+64(SI), Y2             \
	VPBLENDD $0x30, Y1, Y0, COMMON     \ // the first words
	VPBLENDD $0x0C, Y2, COMMON, COMMON \
	VPBLENDD $0x0C, Y0, Y1, Y3         \ // the second ones, in the order 1, 0, 3, 2
	VPBLENDD $0x30, Y2, Y3, Y3         \
	VPERMQ   $0x39, Y3, Y3             \
	VPBLENDD $0x0C, Y1, Y2, THIRD      \ // the third ones, in the order 2, 1, 0, 3
	VPBLENDD $0x30, Y0, THIRD, THIRD   \
	VPERMQ   $0x4E, THIRD, THIRD       \
	VPAND    Y10, COMMON, COMMON       \
	VPAND    Y11, Y3, Y3               \
	BITS(COMMON, Y0)                   \
	BITS(Y3, Y1)                       \
	VPADDB   Y3, COMMON, COMMON        \
	VPXOR    Y0, Y0, Y0                \
	VPSADBW  Y0, COMMON, COMMON

// func sift(rows *byte, groups int, s *Sieve, marks *byte)
TEXT ·sift(SB), NOSPLIT, $0-32
	MOVQ rows+0(FP), SI
	MOVQ groups+8(FP), CX
	MOVQ s+16(FP), BX
	MOVQ marks+24(FP), DI
	LEAQ 40(BX), R8          // needs
	VPBROADCASTQ 0(BX), Y10  // the words
	VPBROADCASTQ 8(BX), Y11
	VPBROADCASTD 16(BX), Y12 // the number
	VPBROADCASTD 24(BX), Y13 // what is added
	VPBROADCASTD 32(BX), Y14 // the least count
	VMOVDQU nibbles<>(SB), Y9
	VPCMPEQD Y15, Y15, Y15
	VPSRLW $12, Y15, Y8
	VPACKUSWB Y8, Y8, Y8     // bytes of 15

group: // eight rows
	FOUR(0, Y4, Y6)
	FOUR(96, Y5, Y7)
	VPSLLQ $32, Y5, Y5
	VPOR Y5, Y4, Y4          // bits in common
	VPADDD Y13, Y4, Y4
	VPSRLQ $32, Y6, Y0
	VPSLLQ $32, Y7, Y1
	VPBLENDD $0xAA, Y7, Y0, Y0 // size, count and mark
	VPBLENDD $0xAA, Y1, Y6, Y6 // the number
	VPSRLD $23, Y15, Y1      // 511
	VPAND Y1, Y0, Y1         // the size
	VPSLLD $8, Y0, Y2
	VPSRLD $24, Y2, Y2       // the count
	VPMAXSD Y14, Y2, Y2
	VPSRLD $29, Y15, Y3      // 7
	VPMINSD Y3, Y2, Y2
	VPSLLD $10, Y2, Y2
	VPSRLD $24, Y0, Y0       // the mark
	VPSLLD $9, Y0, Y0
	VPOR Y0, Y1, Y1
	VPOR Y2, Y1, Y1
	VPCMPEQD Y2, Y2, Y2
	VPGATHERDD Y2, (R8)(Y1*4), Y0
	VPCMPGTD Y4, Y0, Y0      // more is needed
	VPCMPEQD Y12, Y6, Y6
	VPANDN Y0, Y6, Y0
	VMOVDQU order<>(SB), Y1
	VPERMD Y0, Y1, Y0
	VMOVMSKPS Y0, AX
	NOTL AX
	MOVB AX, (DI)
	ADDQ $192, SI
	INCQ DI
	DECQ CX
	JNZ group

	VZEROUPPER
	RET
