#include "textflag.h"

DATA signless<>+0(SB)/4, $0x7FFFFFFF
GLOBL signless<>(SB), RODATA, $4

// Coefficients of erf(x) = x * p(x*x) / q(x*x) for |x| <= 4, the highest power first; 0.7071 = 1/sqrt(2).
DATA erf<>+0(SB)/4, $-2.72614225801306e-10
DATA erf<>+4(SB)/4, $2.77068142495902e-08
DATA erf<>+8(SB)/4, $-2.10102402082508e-06
DATA erf<>+12(SB)/4, $-5.69250639462346e-05
DATA erf<>+16(SB)/4, $-7.34990630326855e-04
DATA erf<>+20(SB)/4, $-2.95459980854025e-03
DATA erf<>+24(SB)/4, $-1.60960333262415e-02
DATA erf<>+28(SB)/4, $-1.45660718464996e-05
DATA erf<>+32(SB)/4, $-2.13374055278905e-04
DATA erf<>+36(SB)/4, $-1.68282697438203e-03
DATA erf<>+40(SB)/4, $-7.37332916720468e-03
DATA erf<>+44(SB)/4, $-1.42647390514189e-02
DATA erf<>+48(SB)/4, $0.70710678118654752
DATA erf<>+52(SB)/4, $4.0
DATA erf<>+56(SB)/4, $-4.0
DATA erf<>+60(SB)/4, $0.5
GLOBL erf<>(SB), RODATA, $64

// func geluAVX2(x *float32, n int)
// n is a multiple of 8.
TEXT ·geluAVX2(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	LEAQ erf<>(SB), DX

	VBROADCASTSS 48(DX), Y15
	VBROADCASTSS 52(DX), Y14
	VBROADCASTSS 56(DX), Y13
	VBROADCASTSS 60(DX), Y12
	VBROADCASTSS 0(DX), Y11
	VBROADCASTSS 28(DX), Y10
	VBROADCASTSS 4(DX), Y9
	VBROADCASTSS 8(DX), Y8
	VBROADCASTSS 32(DX), Y7
	VBROADCASTSS 36(DX), Y6

gelu:
	VMOVUPS (SI), Y0
	VMULPS  Y15, Y0, Y1
	VMINPS  Y14, Y1, Y1
	VMAXPS  Y13, Y1, Y1
	VMULPS  Y1, Y1, Y2 // x*x

	VMOVAPS      Y11, Y3
	VFMADD213PS  Y9, Y2, Y3
	VFMADD213PS  Y8, Y2, Y3
	VBROADCASTSS 12(DX), Y5
	VFMADD213PS  Y5, Y2, Y3
	VBROADCASTSS 16(DX), Y5
	VFMADD213PS  Y5, Y2, Y3
	VBROADCASTSS 20(DX), Y5
	VFMADD213PS  Y5, Y2, Y3
	VBROADCASTSS 24(DX), Y5
	VFMADD213PS  Y5, Y2, Y3
	VMULPS       Y1, Y3, Y3

	VMOVAPS      Y10, Y4
	VFMADD213PS  Y7, Y2, Y4
	VFMADD213PS  Y6, Y2, Y4
	VBROADCASTSS 40(DX), Y5
	VFMADD213PS  Y5, Y2, Y4
	VBROADCASTSS 44(DX), Y5
	VFMADD213PS  Y5, Y2, Y4

	VDIVPS      Y4, Y3, Y3
	VMULPS      Y12, Y0, Y0
	VFMADD213PS Y0, Y0, Y3 // erf * x/2 + x/2
	VMOVUPS     Y3, (SI)
	ADDQ        $32, SI
	SUBQ        $8, CX
	JNZ         gelu

	VZEROUPPER
	RET

// Constants of exp: the least argument, log2(e), the two parts of ln(2), and a polynomial, the highest power first.
DATA exp<>+0(SB)/4, $-87.0
DATA exp<>+4(SB)/4, $1.44269504088896341
DATA exp<>+8(SB)/4, $0.693359375
DATA exp<>+12(SB)/4, $-2.12194440e-4
DATA exp<>+16(SB)/4, $1.9875691500e-4
DATA exp<>+20(SB)/4, $1.3981999507e-3
DATA exp<>+24(SB)/4, $8.3334519073e-3
DATA exp<>+28(SB)/4, $4.1665795894e-2
DATA exp<>+32(SB)/4, $1.6666665459e-1
DATA exp<>+36(SB)/4, $5.0000001201e-1
DATA exp<>+40(SB)/4, $1.0
GLOBL exp<>(SB), RODATA, $44

// func softmaxAVX2(x *float32, n int, scale float32)
// n is a multiple of 8, at least 8.
TEXT ·softmaxAVX2(SB), NOSPLIT, $0-20
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS scale+16(FP), Y15
	LEAQ         exp<>(SB), DX

	MOVQ    SI, DI
	MOVQ    CX, BX
	VMOVUPS (DI), Y0

most:
	VMAXPS (DI), Y0, Y0
	ADDQ   $32, DI
	SUBQ   $8, BX
	JNZ    most

	VEXTRACTF128 $1, Y0, X1
	VMAXPS       X1, X0, X0
	VPERMILPS    $0x4E, X0, X1
	VMAXPS       X1, X0, X0
	VPERMILPS    $0xB1, X0, X1
	VMAXPS       X1, X0, X0
	VBROADCASTSS X0, Y14

	VBROADCASTSS 0(DX), Y13
	VBROADCASTSS 4(DX), Y12
	VBROADCASTSS 8(DX), Y11
	VBROADCASTSS 12(DX), Y10
	VBROADCASTSS 16(DX), Y9
	VBROADCASTSS 20(DX), Y8
	VBROADCASTSS 24(DX), Y7
	VBROADCASTSS 28(DX), Y6
	VBROADCASTSS 32(DX), Y5
	VBROADCASTSS 36(DX), Y4
	VXORPS       Y3, Y3, Y3 // the sum
	MOVQ         SI, DI
	MOVQ         CX, BX

power:
	VMOVUPS      (DI), Y0
	VSUBPS       Y14, Y0, Y0
	VMULPS       Y15, Y0, Y0
	VMAXPS       Y13, Y0, Y0
	VMULPS       Y12, Y0, Y1
	VROUNDPS     $0, Y1, Y1
	VFNMADD231PS Y11, Y1, Y0
	VFNMADD231PS Y10, Y1, Y0
	VMOVAPS      Y9, Y2
	VFMADD213PS  Y8, Y0, Y2
	VFMADD213PS  Y7, Y0, Y2
	VFMADD213PS  Y6, Y0, Y2
	VFMADD213PS  Y5, Y0, Y2
	VFMADD213PS  Y4, Y0, Y2
	VMULPS       Y0, Y2, Y2
	VFMADD213PS  Y0, Y0, Y2
	VBROADCASTSS 40(DX), Y0
	VADDPS       Y0, Y2, Y2
	VCVTPS2DQ    Y1, Y1
	VPSLLD       $23, Y1, Y1
	VPADDD       Y1, Y2, Y2
	VMOVUPS      Y2, (DI)
	VADDPS       Y2, Y3, Y3
	ADDQ         $32, DI
	SUBQ         $8, BX
	JNZ          power

	VEXTRACTF128 $1, Y3, X1
	VADDPS       X1, X3, X3
	VPERMILPS    $0x4E, X3, X1
	VADDPS       X1, X3, X3
	VPERMILPS    $0xB1, X3, X1
	VADDPS       X1, X3, X3
	VMOVSS       40(DX), X0
	VDIVSS       X3, X0, X0
	VBROADCASTSS X0, Y0

divide:
	VMULPS  (SI), Y0, Y1
	VMOVUPS Y1, (SI)
	ADDQ    $32, SI
	SUBQ    $8, CX
	JNZ     divide

	VZEROUPPER
	RET

// func layerNormAVX2(x, residual, weight, bias *float32, n int, eps float32)
// n is a multiple of 8, at least 8.
TEXT ·layerNormAVX2(SB), NOSPLIT, $0-44
	MOVQ x+0(FP), SI
	MOVQ residual+8(FP), DI
	MOVQ weight+16(FP), R8
	MOVQ bias+24(FP), R9
	MOVQ n+32(FP), CX

	VXORPS Y2, Y2, Y2
	XORQ   AX, AX

add:
	VMOVUPS (SI)(AX*4), Y0
	VADDPS  (DI)(AX*4), Y0, Y0
	VMOVUPS Y0, (SI)(AX*4)
	VADDPS  Y0, Y2, Y2
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     add

	VEXTRACTF128 $1, Y2, X1
	VADDPS       X1, X2, X2
	VPERMILPS    $0x4E, X2, X1
	VADDPS       X1, X2, X2
	VPERMILPS    $0xB1, X2, X1
	VADDPS       X1, X2, X2
	VXORPS       X3, X3, X3
	VCVTSI2SSQ   CX, X3, X3
	VDIVSS       X3, X2, X2
	VBROADCASTSS X2, Y2 // the mean

	VXORPS Y4, Y4, Y4
	XORQ   AX, AX

square:
	VMOVUPS     (SI)(AX*4), Y0
	VSUBPS      Y2, Y0, Y0
	VMOVUPS     Y0, (SI)(AX*4)
	VFMADD231PS Y0, Y0, Y4
	ADDQ        $8, AX
	CMPQ        AX, CX
	JLT         square

	VEXTRACTF128 $1, Y4, X1
	VADDPS       X1, X4, X4
	VPERMILPS    $0x4E, X4, X1
	VADDPS       X1, X4, X4
	VPERMILPS    $0xB1, X4, X1
	VADDPS       X1, X4, X4
	VDIVSS       X3, X4, X4
	VADDSS       eps+40(FP), X4, X4
	VSQRTSS      X4, X4, X4
	LEAQ         exp<>(SB), DX
	VMOVSS       40(DX), X0
	VDIVSS       X4, X0, X0
	VBROADCASTSS X0, Y5

	XORQ AX, AX

norm:
	VMULPS      (SI)(AX*4), Y5, Y0
	VMOVUPS     (R8)(AX*4), Y1
	VMOVUPS     (R9)(AX*4), Y6
	VFMADD213PS Y6, Y1, Y0
	VMOVUPS     Y0, (SI)(AX*4)
	ADDQ        $8, AX
	CMPQ        AX, CX
	JLT         norm

	VZEROUPPER
	RET

// func mostAVX2(x *float32, n int) float32
// n is a multiple of 8. The largest absolute value.
TEXT ·mostAVX2(SB), NOSPLIT, $0-20
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS signless<>(SB), Y2
	VXORPS       Y0, Y0, Y0

largest:
	VANDPS (SI), Y2, Y1
	VMAXPS Y1, Y0, Y0
	ADDQ   $32, SI
	SUBQ   $8, CX
	JNZ    largest

	VEXTRACTF128 $1, Y0, X1
	VMAXPS       X1, X0, X0
	VPERMILPS    $0x4E, X0, X1
	VMAXPS       X1, X0, X0
	VPERMILPS    $0xB1, X0, X1
	VMAXPS       X1, X0, X0
	VMOVSS       X0, ret+16(FP)
	VZEROUPPER
	RET

// func roundWordsAVX2(out *int16, x *float32, n int, scale float32)
// n is a multiple of 8.
TEXT ·roundWordsAVX2(SB), NOSPLIT, $0-28
	MOVQ         out+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS scale+24(FP), Y15

words:
	VMULPS       (SI), Y15, Y0
	VCVTPS2DQ    Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPACKSSDW    X1, X0, X0
	VMOVDQU      X0, (DI)
	ADDQ         $32, SI
	ADDQ         $16, DI
	SUBQ         $8, CX
	JNZ          words

	VZEROUPPER
	RET

// func roundBytesAVX2(out *int8, x *float32, n int, scale float32) int32
// n is a multiple of 8. It returns the sum of the bytes.
TEXT ·roundBytesAVX2(SB), NOSPLIT, $0-36
	MOVQ         out+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS scale+24(FP), Y15
	VPXOR        Y3, Y3, Y3

bytes:
	VMULPS       (SI), Y15, Y0
	VCVTPS2DQ    Y0, Y0
	VPADDD       Y0, Y3, Y3
	VEXTRACTI128 $1, Y0, X1
	VPACKSSDW    X1, X0, X0
	VPACKSSWB    X0, X0, X0
	VMOVQ        X0, (DI)
	ADDQ         $32, SI
	ADDQ         $8, DI
	SUBQ         $8, CX
	JNZ          bytes

	VEXTRACTI128 $1, Y3, X1
	VPADDD       X1, X3, X3
	VPSHUFD      $0x4E, X3, X1
	VPADDD       X1, X3, X3
	VPSHUFD      $0xB1, X3, X1
	VPADDD       X1, X3, X3
	VMOVD        X3, AX
	MOVL         AX, ret+32(FP)
	VZEROUPPER
	RET
