package kernel

import "unsafe"

// Matrix holds the weights and biases of a linear layer, in the order in which the loops read them.
type Matrix struct {
	rows, columns int // the layer's outputs and inputs

	panels []float32 // for each panel of outputs, for each input: as many weights as the panel has outputs
	bias   []float32 // padded to whole panels

	panels8 []byte    // the same, of groups of quantised weights
	scales  []float32 // of the outputs
	groups  int       // of inputs; 0: the weights are float32
}

// Workspace is the memory that one goroutine needs to multiply.
type Workspace struct {
	tile  tile
	tile8 tile8
	edge  [maxHeight * maxWidth]float32
	words []int16
	bytes []int8
}

// Rows is the number of outputs.
func (m *Matrix) Rows() int { return m.rows }

// Float32 packs a matrix of one row for each output. The bias may be nil.
func (k *Kernels) Float32(weights []float32, rows, columns int, bias []float32) *Matrix {
	panels := (rows + k.width - 1) / k.width
	m := &Matrix{rows: rows, columns: columns, panels: make([]float32, panels*columns*k.width),
		bias: make([]float32, panels*k.width)}
	copy(m.bias, bias)
	for row := range rows {
		to := m.panels[row/k.width*columns*k.width+row%k.width:]
		for i, w := range weights[row*columns : (row+1)*columns] {
			to[i*k.width] = w
		}
	}
	return m
}

// Int8 packs a matrix as 8-bit integers, each row with a scale of its own.
func (k *Kernels) Int8(weights []float32, rows, columns int, bias []float32) *Matrix {
	panels, groups := (rows+k.width8-1)/k.width8, (columns+k.group8-1)/k.group8
	m := &Matrix{rows: rows, columns: columns, groups: groups, panels8: make([]byte, panels*groups*k.group8*k.width8),
		bias: make([]float32, panels*k.width8), scales: make([]float32, panels*k.width8)}
	copy(m.bias, bias)
	shift := byte(0)
	if k.bytes8 {
		shift = 128
		for i := range m.panels8 {
			m.panels8[i] = shift
		}
	}
	codes := make([]int8, columns)
	for row := range rows {
		m.scales[row] = Quantise(codes, weights[row*columns:(row+1)*columns])
		panel := m.panels8[row/k.width8*groups*k.group8*k.width8:]
		for i, code := range codes {
			panel[(i/k.group8*k.width8+row%k.width8)*k.group8+i%k.group8] = byte(code) + shift
		}
	}
	return m
}

// Quantise rounds numbers to 8-bit integers, -127 to 127, and returns the scale that makes them numbers again.
func Quantise(out []int8, x []float32) float32 {
	most := mostGo(x)
	if most == 0 {
		clear(out)
		return 0
	}
	bytesGo(out, x, 127/most)
	return most / 127
}

// Multiply applies the layer to the rows of a, each with a number for each input, and writes the rows of c.
func (k *Kernels) Multiply(w *Workspace, m *Matrix, c, a []float32, rows int) {
	if rows == 0 {
		return
	}
	_, _ = a[rows*m.columns-1], c[rows*m.rows-1]
	if m.groups > 0 {
		k.multiplyInt8(w, m, c, a, rows)
		return
	}
	for panel := 0; panel*k.width < m.rows; panel++ {
		column := panel * k.width
		b := unsafe.Pointer(&m.panels[column*m.columns])
		for row := 0; row < rows; row += k.height {
			w.tile = tile{a: unsafe.Pointer(&a[row*m.columns]), strideA: uintptr(4 * m.columns), b: b,
				strideB: uintptr(4 * k.width), rounds: m.columns, bias: unsafe.Pointer(&m.bias[column]),
				rows: min(rows-row, k.height)}
			k.place(w, c, row, column, m.rows)
		}
	}
}

// place multiplies a tile and puts it in its place of c; a wider one goes through the edge buffer.
func (k *Kernels) place(w *Workspace, c []float32, row, column, columns int) {
	t := &w.tile
	if column+k.width <= columns {
		t.c, t.strideC = unsafe.Pointer(&c[row*columns+column]), uintptr(4*columns)
		k.multiply(t)
		return
	}
	t.c, t.strideC = unsafe.Pointer(&w.edge[0]), uintptr(4*k.width)
	k.multiply(t)
	for i := range t.rows {
		copy(c[(row+i)*columns+column:(row+i+1)*columns], w.edge[i*k.width:])
	}
}

// multiplyInt8 quantises each row with a scale of its own, and multiplies integers.
func (k *Kernels) multiplyInt8(w *Workspace, m *Matrix, c, a []float32, rows int) {
	stride := m.groups * k.group8
	size := 2
	if k.bytes8 {
		size = 1
		w.bytes = grow(w.bytes, rows*stride)
	} else {
		w.words = grow(w.words, rows*stride)
	}
	scales, shifts := make([]float32, rows), make([]int32, rows)
	for row := range rows {
		scales[row], shifts[row] = k.quantiseRow(w, a[row*m.columns:(row+1)*m.columns], row*stride, stride)
	}
	for column := 0; column < m.rows; column += k.width8 {
		b := unsafe.Pointer(&m.panels8[column*stride])
		for row := 0; row < rows; row += k.height8 {
			t := &w.tile8
			*t = tile8{strideA: uintptr(size * stride), b: b, strideB: uintptr(k.group8 * k.width8), rounds: m.groups,
				bias: unsafe.Pointer(&m.bias[column]), rows: min(rows-row, k.height8),
				columns: unsafe.Pointer(&m.scales[column]), scales: unsafe.Pointer(&scales[row]),
				shifts: unsafe.Pointer(&shifts[row])}
			if k.bytes8 {
				t.a = unsafe.Pointer(&w.bytes[row*stride])
			} else {
				t.a = unsafe.Pointer(&w.words[row*stride])
			}
			if column+k.width8 <= m.rows {
				t.c, t.strideC = unsafe.Pointer(&c[row*m.rows+column]), uintptr(4*m.rows)
				k.multiply8(t)
				continue
			}
			t.c, t.strideC = unsafe.Pointer(&w.edge[0]), uintptr(4*k.width8)
			k.multiply8(t)
			for i := range t.rows {
				copy(c[(row+i)*m.rows+column:(row+i+1)*m.rows], w.edge[i*k.width8:])
			}
		}
	}
}

// quantiseRow rounds a row to integers at a place of the workspace, and fills it up to a stride with zeros. It
// returns the scale, and what the weights' shift adds to every sum of the row.
func (k *Kernels) quantiseRow(w *Workspace, x []float32, place, stride int) (scale float32, shift int32) {
	most := k.most(x)
	inverse := float32(0)
	if most > 0 {
		scale, inverse = most/127, 127/most
	}
	if k.bytes8 {
		out := w.bytes[place : place+stride]
		shift = 128 * k.bytes(out, x, inverse)
		clear(out[len(x):])
		return scale, shift
	}
	out := w.words[place : place+stride]
	k.words(out, x, inverse)
	clear(out[len(x):])
	return scale, 0
}

// grow returns a slice of n elements, the old one if it has room.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
