package weights

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/embedders/transformer/internal/protobuf"
)

// maxONNX bounds an ONNX file; larger models keep their weights in other files (2 GiB is the limit of Protocol
// Buffers).
const maxONNX = 2 << 30

// onnx is the weights of an ONNX file. The graph itself is not computed. It only shows which initializer is which
// weight: exporters rename the matrices (onnx::MatMul_123), turn them, and quantise them, but leave the names of the
// biases that are added to their products.
type onnx struct {
	path    string
	initial map[string]Tensor
	nodes   []onnxNode
	makers  map[string]int // from an output to its node

	weights map[string]onnxWeight
}

// onnxWeight describes how a weight is made of initializers.
type onnxWeight struct {
	tensor      string
	turned      bool   // the initializer holds columns where the weight has rows
	scale, zero string // of quantised numbers, else empty; zero may be empty
}

type onnxNode struct {
	kind            string
	inputs, outputs []string
	turnB           bool // attribute transB of Gemm
}

// OpenONNX reads an ONNX file.
func OpenONNX(path string) (Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxONNX {
		return nil, fmt.Errorf("%s has %d bytes; expected at most %d in an ONNX file", path, info.Size(), maxONNX)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ReadONNX(path, data)
}

// ReadONNX reads the contents of an ONNX file. Path is for errors.
func ReadONNX(path string, data []byte) (Source, error) {
	o := &onnx{path: path, initial: map[string]Tensor{}, makers: map[string]int{}, weights: map[string]onnxWeight{}}
	graphs := 0
	err := protobuf.Each(data, func(f protobuf.Field) error {
		if f.Number != 7 || f.Kind != protobuf.Bytes { // ModelProto.graph
			return nil
		}
		graphs++
		return protobuf.Each(f.Data, o.readGraph)
	})
	if err != nil {
		return nil, fmt.Errorf("%s is damaged, or not an ONNX file: %w", path, err)
	}
	if graphs != 1 {
		return nil, fmt.Errorf("%s holds %d graphs; expected an ONNX file with one", path, graphs)
	}
	o.findWeights()
	return o, nil
}

func (o *onnx) readGraph(f protobuf.Field) error {
	switch f.Number {
	case 1:
		n, err := readNode(f.Data)
		if err != nil {
			return err
		}
		o.nodes = append(o.nodes, n)
		for _, output := range n.outputs {
			o.makers[output] = len(o.nodes) - 1
		}
	case 5:
		return o.readInitializer(f.Data)
	}
	return nil
}

// readNode reads a NodeProto.
func readNode(data []byte) (n onnxNode, err error) {
	err = protobuf.Each(data, func(f protobuf.Field) error {
		switch f.Number {
		case 1:
			n.inputs = append(n.inputs, string(f.Data))
		case 2:
			n.outputs = append(n.outputs, string(f.Data))
		case 4:
			n.kind = string(f.Data)
		case 5:
			name, value := "", uint64(0)
			err := protobuf.Each(f.Data, func(f protobuf.Field) error {
				switch f.Number {
				case 1:
					name = string(f.Data)
				case 3:
					value = f.Value
				}
				return nil
			})
			n.turnB = n.turnB || name == "transB" && value == 1
			return err
		}
		return nil
	})
	return n, err
}

// onnxTypes are the values of TensorProto.DataType that are read.
var onnxTypes = map[uint64]Type{1: F32, 2: U8, 3: I8, 6: I32, 7: I64, 10: F16, 11: F64, 16: BF16}

// readInitializer reads a TensorProto.
func (o *onnx) readInitializer(data []byte) error {
	var t Tensor
	var dims []int64
	var name string
	var typed []byte // float_data, int32_data and the like
	raw, elsewhere := false, false
	err := protobuf.Each(data, func(f protobuf.Field) error {
		switch f.Number {
		case 1:
			return eachVarint(f, func(v uint64) { dims = append(dims, int64(v)) }, maxDimensions-len(dims))
		case 2:
			t.Type = onnxTypes[f.Value]
		case 4: // floats, packed or one by one
			if f.Kind == protobuf.Bytes {
				typed = append(typed, f.Data...)
			} else {
				typed = binary.LittleEndian.AppendUint32(typed, uint32(f.Value))
			}
		case 5: // int32s, which also hold shorter numbers
			return eachVarint(f, func(v uint64) { typed = binary.LittleEndian.AppendUint32(typed, uint32(v)) }, len(data))
		case 8:
			name = string(f.Data)
		case 9:
			t.Data, raw = f.Data, true
		case 13, 14:
			elsewhere = elsewhere || f.Number == 13 || f.Value == 1
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("initializer %.80q: %w", name, err)
	}
	if elsewhere {
		return fmt.Errorf("initializer %.80q is in another file, which is not supported", name)
	}
	n, ok := elements(dims)
	if !ok {
		return fmt.Errorf("initializer %.80q has the shape %v", name, dims)
	}
	for _, size := range dims {
		t.Shape = append(t.Shape, int(size))
	}
	if !raw {
		t.Data = narrow(typed, t.Type)
	}
	if t.Type != 0 && n*int64(t.Type.Size()) != int64(len(t.Data)) {
		if (t.Type == I64 || t.Type == F64) && !raw { // a shape or a number, which is not needed
			return nil
		}
		return fmt.Errorf("initializer %.80q of shape %v has %d bytes; expected %d for its %v numbers", name, dims,
			len(t.Data),
			n*int64(t.Type.Size()), t.Type)
	}
	o.initial[name] = t
	return nil
}

// eachVarint calls found for each value of a repeated number, packed or not, up to a maximum.
func eachVarint(f protobuf.Field, found func(uint64), most int) error {
	if f.Kind != protobuf.Bytes {
		if most < 1 {
			return errors.New("it has too many numbers")
		}
		found(f.Value)
		return nil
	}
	for data := f.Data; len(data) > 0; most-- {
		v, n := binary.Uvarint(data)
		if n <= 0 || most < 1 {
			return errors.New("a list of numbers is damaged")
		}
		found(v)
		data = data[n:]
	}
	return nil
}

// narrow converts numbers of 4 bytes each to the bytes of a type.
func narrow(words []byte, to Type) []byte {
	size := to.Size()
	if size == 0 || size >= 4 {
		return words
	}
	out := make([]byte, 0, len(words)/4*size)
	for i := 0; i+4 <= len(words); i += 4 {
		out = append(out, words[i:i+size]...)
	}
	return out
}

// findWeights finds the weights of the graph.
func (o *onnx) findWeights() {
	for name := range o.initial {
		o.weights[name] = onnxWeight{tensor: name}
		if base, ok := strings.CutSuffix(name, "_quantized"); ok {
			if w, ok := o.quantised(name); ok {
				o.weights[base] = w
			}
		}
	}
	for name := range o.makers {
		if w, ok := o.initializer(name); ok && !o.has(name) {
			o.weights[name] = w
		}
	}
	for _, n := range o.nodes {
		if (n.kind != "Add" || len(n.inputs) != 2) && (n.kind != "Gemm" || len(n.inputs) != 3) {
			continue
		}
		for i, input := range n.inputs {
			bias := o.identical(input)
			base, ok := strings.CutSuffix(bias, ".bias")
			if _, known := o.initial[bias]; !ok || !known || o.has(base+".weight") {
				continue
			}
			if n.kind == "Gemm" {
				if w, ok := o.initializer(n.inputs[1]); ok && i == 2 {
					w.turned = w.turned != !n.turnB
					o.weights[base+".weight"] = w
				}
				continue
			}
			if w, ok := o.factor(n.inputs[1-i], 0); ok {
				o.weights[base+".weight"] = w
			}
		}
	}
}

func (o *onnx) has(name string) bool {
	_, ok := o.weights[name]
	return ok
}

// quantised finds the scale and zero point beside a quantised initializer, by the names that onnxruntime gives.
func (o *onnx) quantised(name string) (onnxWeight, bool) {
	base := strings.TrimSuffix(name, "_quantized")
	w := onnxWeight{tensor: name, scale: base + "_scale", zero: base + "_zero_point"}
	if _, ok := o.initial[w.zero]; !ok {
		w.zero = ""
	}
	_, ok := o.initial[w.scale]
	return w, ok
}

// identical follows nodes that only pass on an initializer.
func (o *onnx) identical(name string) string {
	for range 8 {
		maker, ok := o.makers[name]
		if !ok || o.nodes[maker].kind != "Identity" || len(o.nodes[maker].inputs) != 1 {
			break
		}
		name = o.nodes[maker].inputs[0]
	}
	return name
}

// initializer finds the weight behind a value: an initializer, transposed or quantised or both.
func (o *onnx) initializer(name string) (onnxWeight, bool) {
	name = o.identical(name)
	if _, ok := o.initial[name]; ok {
		return onnxWeight{tensor: name}, true
	}
	maker, ok := o.makers[name]
	if !ok {
		return onnxWeight{}, false
	}
	n := o.nodes[maker]
	switch {
	case n.kind == "Transpose" && len(n.inputs) == 1:
		from := o.identical(n.inputs[0])
		_, ok := o.initial[from]
		return onnxWeight{tensor: from, turned: true}, ok
	case n.kind == "Mul" && len(n.inputs) == 2: // integers made floats, times their scales
		for i, input := range n.inputs {
			cast, ok := o.makers[input]
			if !ok || o.nodes[cast].kind != "Cast" || len(o.nodes[cast].inputs) != 1 {
				continue
			}
			w := onnxWeight{tensor: o.nodes[cast].inputs[0], scale: n.inputs[1-i]}
			_, a := o.initial[w.tensor]
			_, b := o.initial[w.scale]
			return w, a && b
		}
	case n.kind == "DequantizeLinear" && len(n.inputs) >= 2:
		w := onnxWeight{tensor: n.inputs[0], scale: n.inputs[1]}
		if len(n.inputs) > 2 {
			w.zero = n.inputs[2]
		}
		_, a := o.initial[w.tensor]
		_, b := o.initial[w.scale]
		return w, a && b
	}
	return onnxWeight{}, false
}

// factor finds the weights in the product that a value comes from.
func (o *onnx) factor(name string, depth int) (onnxWeight, bool) {
	maker, ok := o.makers[name]
	if !ok || depth > 6 {
		return onnxWeight{}, false
	}
	n := o.nodes[maker]
	if len(n.inputs) > 4 { // none of these kinds has more
		return onnxWeight{}, false
	}
	switch n.kind {
	case "MatMul":
		if len(n.inputs) == 2 {
			w, ok := o.initializer(n.inputs[1])
			w.turned = !w.turned
			return w, ok
		}
	case "MatMulInteger":
		if len(n.inputs) >= 2 {
			w, ok := o.quantised(n.inputs[1])
			w.turned = true
			return w, ok
		}
	case "Cast", "Mul", "Identity":
		for _, input := range n.inputs[:min(len(n.inputs), 2)] {
			if w, ok := o.factor(input, depth+1); ok {
				return w, true
			}
		}
	}
	return onnxWeight{}, false
}

func (o *onnx) Path() string         { return o.path }
func (o *onnx) Close() error         { return nil }
func (o *onnx) Has(name string) bool { return o.has(name) }
func (o *onnx) Names() []string      { return slices.Sorted(maps.Keys(o.weights)) }

func (o *onnx) Shape(name string) []int {
	w, ok := o.weights[name]
	if !ok {
		return nil
	}
	shape := append([]int{}, o.initial[w.tensor].Shape...)
	if w.turned {
		slices.Reverse(shape)
	}
	return shape
}

func (o *onnx) Read(name string) (Tensor, error) {
	w, ok := o.weights[name]
	if !ok {
		return Tensor{}, fmt.Errorf("%s has no weight %.80q", o.path, name)
	}
	t := o.initial[w.tensor]
	if t.Type == 0 {
		return Tensor{}, fmt.Errorf("%s: weight %.80q has a type that is not supported", o.path, name)
	}
	if w.scale == "" && !w.turned {
		return t, nil
	}
	if w.turned && len(t.Shape) != 2 {
		return Tensor{}, fmt.Errorf("%s: weight %.80q has the shape %v; expected a matrix", o.path, name, t.Shape)
	}
	if w.scale == "" && t.Type != F32 && t.Type != F16 && t.Type != BF16 && t.Type != F64 {
		return t, nil // the caller reports the shape it expected
	}
	values := t.Floats()
	if w.scale != "" {
		if err := o.dequantise(values, t.Shape, w); err != nil {
			return Tensor{}, fmt.Errorf("%s: weight %.80q: %w", o.path, name, err)
		}
	}
	out := make([]byte, 4*len(values))
	for i, v := range values {
		to := i
		if w.turned {
			to = i%t.Shape[1]*t.Shape[0] + i/t.Shape[1]
		}
		binary.LittleEndian.PutUint32(out[4*to:], math.Float32bits(v))
	}
	return Tensor{Type: F32, Shape: o.Shape(name), Data: out}, nil
}

// dequantise makes numbers of integers: (integer - zero point) * scale. There is one scale for the tensor, or one for
// each row of a matrix, or for each column (of a transposed matrix).
func (o *onnx) dequantise(values []float32, shape []int, w onnxWeight) error {
	scale, zero := o.initial[w.scale], o.initial[w.zero]
	columns := 1
	if len(shape) > 0 {
		columns = max(shape[len(shape)-1], 1)
	}
	n := scale.Len()
	byColumn := n == columns && (w.turned || n != len(values)/columns)
	if len(scale.Shape) == 2 { // its shape shows which
		byColumn = n == columns && scale.Shape[0] == 1
	}
	switch {
	case n == 1 || byColumn || n > 0 && n*columns == len(values):
	default:
		return fmt.Errorf("its shape is %v, and it has %d scales; expected one, or one for each row or column",
			shape, n)
	}
	if w.zero != "" && zero.Len() != n {
		return fmt.Errorf("it has %d scales and %d zero points", n, zero.Len())
	}
	for i := range values {
		at := 0
		if n > 1 {
			at = i / columns
			if byColumn {
				at = i % columns
			}
		}
		if w.zero != "" {
			values[i] -= zero.Float(at)
		}
		values[i] *= scale.Float(at)
	}
	return nil
}
