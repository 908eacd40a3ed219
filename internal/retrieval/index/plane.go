package index

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/souvenir-ai/souvenir/internal/simd"
)

// The plane that shows the vectors: their first two principal components. It is the same for the same vectors, in
// any process.

const (
	// planeSize is the most numbers of a vector for the plane. Longer ones are folded: each number is added to one
	// of planeSize, with one sign or the other, which roughly preserves inner products (Weinberger et al.,
	// "Feature Hashing for Large Scale Multitask Learning", 2009).
	planeSize = 512

	planeBlock = 4   // vectors that are iterated together: the two wanted ones, and two to converge faster
	planeSteps = 100 // iterations
	jacobi     = 30  // sweeps; a matrix of four rows needs about five
)

// Plane returns the places of some vectors of one size, stored one after another, on their plane, as pairs x, y,
// and the part of the variance that each of the two directions explains. It changes the vectors. The error is the
// context's.
func Plane(ctx context.Context, vectors []float32, size int) (places []float32, explained [2]float64, err error) {
	n := 0
	if size > 0 {
		n = len(vectors) / size
	}
	if n == 0 {
		return nil, explained, ctx.Err()
	}
	columns, size := centred(vectors, n, size)
	dot := simd.DotFloats
	covariance, total := make([]float32, size*size), 0.0
	for a := range size {
		if err := ctx.Err(); err != nil {
			return nil, explained, err
		}
		for b := range a + 1 {
			c := dot(columns[a*n:(a+1)*n], columns[b*n:(b+1)*n]) / float32(n)
			covariance[a*size+b], covariance[b*size+a] = c, c
		}
		total += float64(covariance[a*size+a])
	}
	axes, variances := principal(covariance, size, dot)
	places = make([]float32, 2*n)
	for k, axis := range axes {
		for a, weight := range axis {
			for i, x := range columns[a*n : (a+1)*n] {
				places[2*i+k] += weight * x
			}
		}
		if total > 0 {
			explained[k] = min(max(variances[k]/total, 0), 1)
		}
	}
	return places, explained, ctx.Err()
}

// centred returns the vectors column by column, folded if they are long, each column with the mean 0.
func centred(vectors []float32, n, size int) (columns []float32, width int) {
	width = min(size, planeSize)
	columns = make([]float32, width*n)
	for a := range size {
		to, sign := a, float32(1)
		if size > planeSize {
			h := uint64(a+1) * 0x9e3779b97f4a7c15 // a hash that mixes well (Knuth's multiplicative one)
			to, sign = int(h>>40)%width, 1-2*float32(h>>63)
		}
		column := columns[to*n : (to+1)*n]
		for i := range column {
			column[i] += sign * vectors[i*size+a]
		}
	}
	for a := range width {
		column, sum := columns[a*n:(a+1)*n], 0.0
		for _, x := range column {
			sum += float64(x)
		}
		mean := float32(sum / float64(n))
		for i := range column {
			column[i] -= mean
		}
	}
	return columns, width
}

// principal returns the two directions of the largest variance, by subspace iteration and a Rayleigh-Ritz step
// (Golub and Van Loan, "Matrix Computations", section 8.2), and their variances.
func principal(covariance []float32, size int, dot dotFunc) (axes [2][]float32, variances [2]float64) {
	random := rand.New(rand.NewPCG(1, 2))
	block, image := make([][]float32, min(planeBlock, size)), make([][]float32, min(planeBlock, size))
	for k := range block {
		block[k], image[k] = make([]float32, size), make([]float32, size)
		for i := range block[k] {
			block[k][i] = float32(random.NormFloat64())
		}
	}
	orthonormal(block)
	multiply := func() {
		for k := range block {
			for a := range size {
				image[k][a] = dot(covariance[a*size:(a+1)*size], block[k])
			}
		}
	}
	for range planeSteps {
		multiply()
		block, image = image, block
		orthonormal(block)
	}
	multiply()
	small := make([][]float64, len(block))
	for i := range block {
		small[i] = make([]float64, len(block))
		for j := range block {
			small[i][j] = float64(dot(block[i], image[j]))
		}
	}
	values, mix := eigen(small)
	for k := range axes {
		axes[k] = make([]float32, size)
		if k >= len(block) {
			continue
		}
		variances[k] = values[k]
		for i := range block {
			for a := range size {
				axes[k][a] += float32(mix[i][k]) * block[i][a]
			}
		}
		most := 0
		for a := range size {
			if math.Abs(float64(axes[k][a])) > math.Abs(float64(axes[k][most])) {
				most = a
			}
		}
		if axes[k][most] < 0 { // a direction and its opposite are equally good; always choose the same
			for a := range size {
				axes[k][a] = -axes[k][a]
			}
		}
	}
	return axes, variances
}

// orthonormal makes vectors orthonormal by the Gram-Schmidt method; a vector without a direction of its own
// becomes zero.
func orthonormal(block [][]float32) {
	for k, v := range block {
		before := length(v)
		for range 2 { // twice is enough (Kahan and Parlett)
			for _, u := range block[:k] {
				sum := 0.0
				for i := range v {
					sum += float64(u[i]) * float64(v[i])
				}
				for i := range v {
					v[i] -= float32(sum) * u[i]
				}
			}
		}
		if length(v) <= 1e-6*before || !Unit(v) {
			clear(v)
		}
	}
}

// eigen returns the eigenvalues of a small symmetric matrix, the largest first, and its eigenvectors as columns, by
// Jacobi's method.
func eigen(a [][]float64) (values []float64, vectors [][]float64) {
	n := len(a)
	vectors = make([][]float64, n)
	for i := range vectors {
		vectors[i] = make([]float64, n)
		vectors[i][i] = 1
	}
	for range jacobi {
		for p := range n {
			for q := p + 1; q < n; q++ {
				if mean := (a[p][q] + a[q][p]) / 2; mean != 0 {
					rotate(a, vectors, p, q, mean)
				}
			}
		}
	}
	values = make([]float64, n)
	for i := range n {
		values[i] = a[i][i]
	}
	for i := range n { // by selection: there are four
		most := i
		for j := i + 1; j < n; j++ {
			if values[j] > values[most] {
				most = j
			}
		}
		values[i], values[most] = values[most], values[i]
		for r := range n {
			vectors[r][i], vectors[r][most] = vectors[r][most], vectors[r][i]
		}
	}
	return values, vectors
}

// rotate turns two axes so that the number between them becomes 0.
func rotate(a, vectors [][]float64, p, q int, between float64) {
	theta := (a[q][q] - a[p][p]) / (2 * between)
	t := 1 / (math.Abs(theta) + math.Sqrt(theta*theta+1))
	if theta < 0 {
		t = -t
	}
	cos := 1 / math.Sqrt(t*t+1)
	sin := t * cos
	for i := range a {
		a[i][p], a[i][q] = cos*a[i][p]-sin*a[i][q], sin*a[i][p]+cos*a[i][q]
	}
	for i := range a {
		a[p][i], a[q][i] = cos*a[p][i]-sin*a[q][i], sin*a[p][i]+cos*a[q][i]
		vectors[i][p], vectors[i][q] = cos*vectors[i][p]-sin*vectors[i][q], sin*vectors[i][p]+cos*vectors[i][q]
	}
}
