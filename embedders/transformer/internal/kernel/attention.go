package kernel

import (
	"math"
	"unsafe"
)

// Attention is the memory for the attention of one head.
type Attention struct {
	Workspace
	keys   []float32 // transposed, in panels
	values []float32 // in panels
	scores []float32
	zeros  [maxWidth]float32
}

// Attend computes softmax(q * k' / sqrt(size)) * v of one head of one text of n tokens, and writes it to out. The rows
// of q, k and v are stride numbers apart, those of out outStride numbers.
func (k *Kernels) Attend(w *Attention, out []float32, outStride int, q, keys, values []float32, stride, n, size int) {
	width := k.width
	padded := (n + width - 1) / width * width
	wide := (size + width - 1) / width * width
	w.keys, w.scores = grow(w.keys, padded*size), grow(w.scores, n*padded)
	w.values = grow(w.values, n*wide)
	if padded > n {
		clear(w.keys[(padded-width)*size:])
	}
	for row := range n {
		to := w.keys[row/width*width*size+row%width:]
		for i, x := range keys[row*stride : row*stride+size] {
			to[i*width] = x
		}
		from := values[row*stride : row*stride+size]
		for column := 0; column < size; column += width {
			panel := w.values[column*n+row*width : column*n+(row+1)*width]
			clear(panel[copy(panel, from[column:]):])
		}
	}
	zeros := unsafe.Pointer(&w.zeros[0])
	for column := 0; column < n; column += width {
		for row := 0; row < n; row += k.height {
			w.tile = tile{a: unsafe.Pointer(&q[row*stride]), strideA: uintptr(4 * stride),
				b: unsafe.Pointer(&w.keys[column*size]), strideB: uintptr(4 * width), rounds: size, bias: zeros,
				c: unsafe.Pointer(&w.scores[row*padded+column]), strideC: uintptr(4 * padded), rows: min(n-row, k.height)}
			k.multiply(&w.tile)
		}
	}
	scale := float32(1 / math.Sqrt(float64(size)))
	least := float32(math.Inf(-1))
	for row := range n {
		scores := w.scores[row*padded : (row+1)*padded]
		for i := n; i < padded; i++ {
			scores[i] = least
		}
		k.softmax(scores, scale)
	}
	for column := 0; column < size; column += width {
		for row := 0; row < n; row += k.height {
			w.tile = tile{a: unsafe.Pointer(&w.scores[row*padded]), strideA: uintptr(4 * padded),
				b: unsafe.Pointer(&w.values[column*n]), strideB: uintptr(4 * width), rounds: n, bias: zeros,
				rows: min(n-row, k.height)}
			t := &w.tile
			if column+width <= size {
				t.c, t.strideC = unsafe.Pointer(&out[row*outStride+column]), uintptr(4*outStride)
				k.multiply(t)
				continue
			}
			t.c, t.strideC = unsafe.Pointer(&w.edge[0]), uintptr(4*width)
			k.multiply(t)
			for i := range t.rows {
				copy(out[(row+i)*outStride+column:(row+i)*outStride+size], w.edge[i*width:])
			}
		}
	}
}
