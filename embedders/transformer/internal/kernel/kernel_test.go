package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func random(g *rand.Rand, n int, size float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(g.NormFloat64() * size)
	}
	return x
}

func generator() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// each runs a test with all loops that this machine supports, which always include the portable ones.
func each(t *testing.T, test func(t *testing.T, k *Kernels)) {
	for _, k := range Available() {
		t.Run(k.Name, func(t *testing.T) { test(t, k) })
	}
}

// TestProductsAreExact covers every number of rows of a tile, columns that do not fill a panel, and odd lengths.
func TestProductsAreExact(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		g := generator()
		for rows := 1; rows <= 27; rows++ {
			for _, size := range [][2]int{{1, 1}, {5, 3}, {8, 32}, {31, 33}, {36, 36}, {64, 40}, {70, 100}, {100, 36}} {
				outputs, inputs := size[0], size[1]
				weights, bias := random(g, outputs*inputs, 1), random(g, outputs, 1)
				a, c := random(g, rows*inputs, 1), make([]float32, rows*outputs+1)
				c[rows*outputs] = 7
				k.Multiply(&Workspace{}, k.Float32(weights, outputs, inputs, bias), c[:rows*outputs], a, rows)
				for i := range rows * outputs {
					row, column := i/outputs, i%outputs
					want := float64(bias[column])
					for j := range inputs {
						want += float64(a[row*inputs+j]) * float64(weights[column*inputs+j])
					}
					if math.Abs(float64(c[i])-want) > 1e-4 {
						t.Fatalf("%d rows, %d x %d: c[%d][%d] is %v, want %v", rows, outputs, inputs, row, column, c[i], want)
					}
				}
				if c[rows*outputs] != 7 {
					t.Fatalf("%d rows, %d x %d: written past the end; got %v, want 7", rows, outputs, inputs, c[rows*outputs])
				}
			}
		}
	})
}

// TestQuantisedProductsAreExact compares with products of the quantised numbers, computed in integers.
func TestQuantisedProductsAreExact(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		g := generator()
		for rows := 1; rows <= 27; rows++ {
			if !longtest.Part(rows-1, 1, 5) {
				continue
			}
			for _, size := range [][2]int{{1, 1}, {5, 3}, {8, 32}, {33, 31}, {36, 36}, {64, 40}, {70, 100}, {32, 1536}} {
				outputs, inputs := size[0], size[1]
				weights, bias := random(g, outputs*inputs, 1), random(g, outputs, 1)
				a := random(g, rows*inputs, 3)
				a[0] = 40 // an outlier, and the largest code
				weights[0] = -50
				if rows > 2 {
					clear(a[inputs : 2*inputs])
				}
				c := make([]float32, rows*outputs)
				w := &Workspace{words: slices.Repeat([]int16{99}, 5000), bytes: slices.Repeat([]int8{99}, 5000)}
				k.Multiply(w, k.Int8(weights, outputs, inputs, bias), c, a, rows)
				for row := range rows {
					x := make([]int8, inputs)
					scale := Quantise(x, a[row*inputs:(row+1)*inputs])
					for column := range outputs {
						y := make([]int8, inputs)
						columnScale := Quantise(y, weights[column*inputs:(column+1)*inputs])
						sum := 0
						for j := range x {
							sum += int(x[j]) * int(y[j])
						}
						want := float64(sum)*float64(scale)*float64(columnScale) + float64(bias[column])
						if got := float64(c[row*outputs+column]); math.Abs(got-want) > 1e-4+1e-6*math.Abs(want) {
							t.Fatalf("%d rows, %d x %d: c[%d][%d] is %v, want %v", rows, outputs, inputs, row, column, got, want)
						}
					}
				}
			}
		}
	})
}

// TestARowDoesNotDependOnTheRowsBesideIt compares bits.
func TestARowDoesNotDependOnTheRowsBesideIt(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		g := generator()
		const rows, outputs, inputs = 29, 40, 48
		weights, bias, a := random(g, outputs*inputs, 1), random(g, outputs, 1), random(g, rows*inputs, 1)
		for name, m := range map[string]*Matrix{
			"float32": k.Float32(weights, outputs, inputs, bias), "int8": k.Int8(weights, outputs, inputs, bias),
		} {
			all := make([]float32, rows*outputs)
			k.Multiply(&Workspace{}, m, all, a, rows)
			for row := range rows {
				one := make([]float32, outputs)
				k.Multiply(&Workspace{}, m, one, a[row*inputs:(row+1)*inputs], 1)
				if !slices.Equal(one, all[row*outputs:(row+1)*outputs]) {
					t.Fatalf("%s: row %d alone differs, got %v, want %v", name, row, one, all[row*outputs:(row+1)*outputs])
				}
			}
		}
	})
}

// TestFunctionsAgreeWithMathematics compares GELU, softmax and layer normalisation with float64.
func TestFunctionsAgreeWithMathematics(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		g := generator()
		for n := 1; n <= 70; n++ {
			x := append(random(g, n, 3), -100, 100, 0, -5.5, 5.5, -1e-20)
			y := slices.Clone(x)
			k.GELU(y)
			for i, v := range x {
				want := float64(v) * 0.5 * math.Erfc(-float64(v)/math.Sqrt2)
				if math.Abs(float64(y[i])-want) > 4e-6*max(1, math.Abs(want)) {
					t.Errorf("GELU(%v) is %v, want %v", v, y[i], want)
				}
			}
			testSoftmax(t, k, random(g, n, 20))
			testLayerNorm(t, k, random(g, n, 2), random(g, n, 2), random(g, n, 1), random(g, n, 1))
		}
	})
}

func testSoftmax(t *testing.T, k *Kernels, x []float32) {
	t.Helper()
	const scale = 0.25
	x = append(x, float32(math.Inf(-1)))
	y := slices.Clone(x)
	k.Softmax(y, scale)
	most, sum := float64(slices.Max(x)), 0.0
	for _, v := range x {
		sum += math.Exp((float64(v) - most) * scale)
	}
	for i, v := range x {
		if want := math.Exp((float64(v)-most)*scale) / sum; math.Abs(float64(y[i])-want) > 1e-6 {
			t.Errorf("softmax of %d: %d is %v, want %v", len(x), i, y[i], want)
		}
	}
}

func testLayerNorm(t *testing.T, k *Kernels, x, residual, weight, bias []float32) {
	t.Helper()
	y := slices.Clone(x)
	k.LayerNorm(y, residual, weight, bias, 1e-5)
	mean, variance := 0.0, 0.0
	for i := range x {
		mean += float64(x[i]+residual[i]) / float64(len(x))
	}
	for i := range x {
		d := float64(x[i]+residual[i]) - mean
		variance += d * d / float64(len(x))
	}
	for i := range x {
		want := (float64(x[i]+residual[i])-mean)/math.Sqrt(variance+1e-5)*float64(weight[i]) + float64(bias[i])
		if math.Abs(float64(y[i])-want) > 2e-5 {
			t.Errorf("layer norm of %d: %d is %v, want %v", len(x), i, y[i], want)
		}
	}
}

// TestAttentionFollowsItsFormula covers texts and heads that do not fill a panel.
func TestAttentionFollowsItsFormula(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		g := generator()
		w := &Attention{}
		for _, c := range [][2]int{{1, 4}, {2, 12}, {13, 32}, {33, 36}, {64, 64}, {5, 70}, {100, 16}} {
			n, size := c[0], c[1]
			stride := 3*size + 5
			x := random(g, n*stride, 1)
			got := make([]float32, n*(size+3))
			k.Attend(w, got, size+3, x, x[size:], x[2*size:], stride, n, size)
			for row := range n {
				weights, sum := make([]float64, n), 0.0
				for other := range n {
					for i := range size {
						weights[other] += float64(x[row*stride+i]) * float64(x[other*stride+size+i])
					}
					weights[other] = math.Exp(weights[other] / math.Sqrt(float64(size)))
					sum += weights[other]
				}
				for i := range size {
					want := 0.0
					for other := range n {
						want += weights[other] / sum * float64(x[other*stride+2*size+i])
					}
					if math.Abs(float64(got[row*(size+3)+i])-want) > 1e-5 {
						t.Fatalf("%d tokens, size %d: [%d][%d] is %v, want %v", n, size, row, i, got[row*(size+3)+i], want)
					}
				}
				for i := size; i < size+3; i++ {
					if got[row*(size+3)+i] != 0 {
						t.Fatalf("%d tokens, size %d: written beside row %d; got %v, want 0", n, size, row, got[row*(size+3)+i])
					}
				}
			}
		}
	})
}

func BenchmarkMultiply(b *testing.B) {
	g := generator()
	const rows, outputs, inputs = 128, 1536, 384
	weights, bias, a := random(g, outputs*inputs, 1), random(g, outputs, 1), random(g, rows*inputs, 1)
	c := make([]float32, rows*outputs)
	for _, k := range Available() {
		for name, m := range map[string]*Matrix{
			"float32": k.Float32(weights, outputs, inputs, bias), "int8": k.Int8(weights, outputs, inputs, bias),
		} {
			b.Run(fmt.Sprintf("%s/%s", k.Name, name), func(b *testing.B) {
				w := &Workspace{}
				for b.Loop() {
					k.Multiply(w, m, c, a, rows)
				}
				b.ReportMetric(float64(rows*outputs*inputs)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gproducts/s")
			})
		}
	}
}
