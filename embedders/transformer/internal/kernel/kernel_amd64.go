package kernel

import "golang.org/x/sys/cpu"

//go:generate go run generate.go

// Available returns the loops that this processor has, the slowest first.
func Available() []*Kernels {
	all := []*Kernels{Portable()}
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA {
		return all
	}
	avx2 := *all[0]
	avx2.Name, avx2.width, avx2.height, avx2.multiply = "avx2", 16, 6, tileAVX2
	avx2.width8, avx2.height8, avx2.multiply8 = 16, 5, tile8AVX2
	avx2.gelu, avx2.softmax, avx2.layerNorm = fastGELU, fastSoftmax, fastLayerNorm
	avx2.most, avx2.words, avx2.bytes = fastMost, fastWords, fastBytes
	all = append(all, &avx2)
	if !cpu.X86.HasAVX512F || !cpu.X86.HasAVX512BW || !cpu.X86.HasAVX512VL {
		return all
	}
	avx512 := avx2
	avx512.Name, avx512.width, avx512.height, avx512.multiply = "avx512", 32, 12, tileAVX512
	all = append(all, &avx512)
	if !cpu.X86.HasAVX512VNNI {
		return all
	}
	vnni := avx512
	vnni.Name, vnni.width8, vnni.height8, vnni.multiply8 = "avx512-vnni", 32, 12, tileVNNI
	vnni.group8, vnni.bytes8 = 4, true
	return append(all, &vnni)
}

//go:noescape
func tileAVX512(t *tile)

//go:noescape
func tileAVX2(t *tile)

//go:noescape
func tileVNNI(t *tile8)

//go:noescape
func tile8AVX2(t *tile8)

//go:noescape
func geluAVX2(x *float32, n int)

//go:noescape
func softmaxAVX2(x *float32, n int, scale float32)

//go:noescape
func layerNormAVX2(x, residual, weight, bias *float32, n int, eps float32)

//go:noescape
func mostAVX2(x *float32, n int) float32

//go:noescape
func roundWordsAVX2(out *int16, x *float32, n int, scale float32)

//go:noescape
func roundBytesAVX2(out *int8, x *float32, n int, scale float32) int32

// fastGELU computes the remainder after whole registers in a register as well, so that a number's result does not
// depend on its place.
func fastGELU(x []float32) {
	whole := len(x) &^ 7
	if whole > 0 {
		geluAVX2(&x[0], whole)
	}
	if rest := x[whole:]; len(rest) > 0 {
		var last [8]float32
		copy(last[:], rest)
		geluAVX2(&last[0], 8)
		copy(rest, last[:])
	}
}

func fastSoftmax(x []float32, scale float32) {
	if len(x) == 0 || len(x)%8 != 0 {
		softmaxGo(x, scale)
		return
	}
	softmaxAVX2(&x[0], len(x), scale)
}

func fastLayerNorm(x, residual, weight, bias []float32, eps float32) {
	if len(x) == 0 || len(x)%8 != 0 {
		layerNormGo(x, residual, weight, bias, eps)
		return
	}
	layerNormAVX2(&x[0], &residual[0], &weight[0], &bias[0], len(x), eps)
}

func fastMost(x []float32) float32 {
	if len(x) == 0 || len(x)%8 != 0 {
		return mostGo(x)
	}
	return mostAVX2(&x[0], len(x))
}

func fastWords(out []int16, x []float32, scale float32) {
	if len(x) == 0 || len(x)%8 != 0 {
		wordsGo(out, x, scale)
		return
	}
	_ = out[len(x)-1]
	roundWordsAVX2(&out[0], &x[0], len(x), scale)
}

func fastBytes(out []int8, x []float32, scale float32) int32 {
	if len(x) == 0 || len(x)%8 != 0 {
		return bytesGo(out, x, scale)
	}
	_ = out[len(x)-1]
	return roundBytesAVX2(&out[0], &x[0], len(x), scale)
}
