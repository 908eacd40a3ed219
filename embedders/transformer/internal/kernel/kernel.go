// Package kernel has the loops in which a transformer spends its time: matrix products in float32 and int8, GELU,
// softmax and layer normalisation. Each has an implementation in Go, and on amd64 others for AVX2 and AVX-512;
// [Fastest] chooses.
//
// A row of a product does not depend on the other rows: every implementation adds a row's products in one order. So the
// vector of a text does not depend on the other texts in its batch.
package kernel

// Kernels are the loops for one kind of processor.
type Kernels struct {
	Name string

	width, height   int  // of a tile in float32: columns of a panel, and rows at once
	width8, height8 int  // of a tile in int8
	group8          int  // numbers of a row that one round of an int8 tile takes
	bytes8          bool // rows are quantised to bytes, and weights are shifted by 128; otherwise to words

	multiply  func(*tile)
	multiply8 func(*tile8)
	gelu      func(x []float32)
	softmax   func(x []float32, scale float32)
	layerNorm func(x, residual, weight, bias []float32, eps float32)
	most      func(x []float32) float32
	words     func(out []int16, x []float32, scale float32)
	bytes     func(out []int8, x []float32, scale float32) int32
}

const (
	maxHeight = 12
	maxWidth  = 32
)

// GELU replaces each number x by x * Phi(x), where Phi is the normal distribution.
func (k *Kernels) GELU(x []float32) { k.gelu(x) }

// Softmax makes a row of positive numbers whose sum is 1, in proportion to exp(scale * x). The scale is positive.
func (k *Kernels) Softmax(x []float32, scale float32) { k.softmax(x, scale) }

// LayerNorm adds the residual to x and normalises the sum: mean 0, variance 1, then times weight plus bias.
func (k *Kernels) LayerNorm(x, residual, weight, bias []float32, eps float32) {
	k.layerNorm(x, residual[:len(x)], weight[:len(x)], bias[:len(x)], eps)
}

// Portable returns the loops in Go.
func Portable() *Kernels {
	return &Kernels{
		Name: "go", width: 4, height: 12, width8: 4, height8: 12, group8: 2,
		multiply: multiplyGo, multiply8: multiply8Go, gelu: geluGo, softmax: softmaxGo, layerNorm: layerNormGo,
		most: mostGo, words: wordsGo, bytes: bytesGo,
	}
}

// Fastest returns the fastest loops that this processor has.
func Fastest() *Kernels {
	all := Available()
	return all[len(all)-1]
}
