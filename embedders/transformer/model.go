package transformer

import (
	"fmt"
	"strings"

	"github.com/souvenir-ai/souvenir/embedders/transformer/internal/kernel"
	"github.com/souvenir-ai/souvenir/embedders/transformer/internal/weights"
)

// network is a transformer's weights, ready to compute with.
type network struct {
	configuration
	kernels *kernel.Kernels

	words     table
	positions []float32 // a row for each position, with the row of type 0 added
	norm      layerNorm
	layers    []layer
}

type layer struct {
	qkv, attention, intermediate, output *kernel.Matrix
	attentionNorm, outputNorm            layerNorm
}

type layerNorm struct{ weight, bias []float32 }

// table holds the vectors of the vocabulary. They take most of a small model's memory, so they stay in the file's
// precision, or are rounded to 8 bits, each with a scale of its own.
type table struct {
	hidden int
	tensor weights.Tensor
	codes  []int8
	scales []float32
}

// row writes the vector of an id.
func (t *table) row(out []float32, id int) {
	if t.codes != nil {
		scale := t.scales[id]
		for i, code := range t.codes[id*t.hidden : (id+1)*t.hidden] {
			out[i] = scale * float32(code)
		}
		return
	}
	for i := range out {
		out[i] = t.tensor.Float(id*t.hidden + i)
	}
}

// loader reads the tensors of one file. It keeps the first error, and does nothing after it.
type loader struct {
	source  weights.Source
	prefix  string
	kernels *kernel.Kernels
	int8    bool
	err     error
}

// loadNetwork reads all weights.
func loadNetwork(source weights.Source, c configuration, k *kernel.Kernels, precision Precision) (*network, error) {
	l := &loader{source: source, prefix: findPrefix(source), kernels: k, int8: precision == Int8}
	n := &network{configuration: c, kernels: k}
	n.words = l.table("embeddings.word_embeddings.weight", c.Vocabulary, c.Hidden)
	n.positions = l.floats("embeddings.position_embeddings.weight", c.Positions, c.Hidden)
	types := l.floats("embeddings.token_type_embeddings.weight", c.Types, c.Hidden)
	if l.err != nil {
		return nil, l.err
	}
	for i := range n.positions {
		n.positions[i] += types[i%c.Hidden]
	}
	n.norm = l.norm("embeddings.LayerNorm", c.Hidden)
	for i := range c.Layers {
		p := fmt.Sprintf("encoder.layer.%d.", i)
		n.layers = append(n.layers, layer{
			qkv: l.linear(c.Hidden, c.Hidden, p+"attention.self.query", p+"attention.self.key",
				p+"attention.self.value"),
			attention:     l.linear(c.Hidden, c.Hidden, p+"attention.output.dense"),
			attentionNorm: l.norm(p+"attention.output.LayerNorm", c.Hidden),
			intermediate:  l.linear(c.Intermediate, c.Hidden, p+"intermediate.dense"),
			output:        l.linear(c.Hidden, c.Intermediate, p+"output.dense"),
			outputNorm:    l.norm(p+"output.LayerNorm", c.Hidden),
		})
		if l.err != nil {
			return nil, l.err
		}
	}
	return n, nil
}

// findPrefix finds the prefix of the tensors' names: some files hold the model as a part of a larger one.
func findPrefix(source weights.Source) string {
	const known = "embeddings.word_embeddings.weight"
	shortest := ""
	for _, name := range source.Names() {
		prefix, ok := strings.CutSuffix(name, known)
		if !ok || prefix != "" && !strings.HasSuffix(prefix, ".") {
			continue
		}
		if prefix == "" {
			return ""
		}
		if shortest == "" || len(prefix) < len(shortest) {
			shortest = prefix
		}
	}
	return shortest
}

func (l *loader) floats(name string, shape ...int) []float32 {
	t := l.tensor(name, shape...)
	if l.err != nil {
		return nil
	}
	return t.Floats()
}

func (l *loader) tensor(name string, shape ...int) weights.Tensor {
	if l.err != nil {
		return weights.Tensor{}
	}
	t, err := weights.Matrix(l.source, l.prefix+name, shape...)
	l.err = err
	return t
}

// norm reads a layer normalisation. Old files call its parts gamma and beta.
func (l *loader) norm(name string, size int) layerNorm {
	weight, bias := ".weight", ".bias"
	if !l.source.Has(l.prefix+name+weight) && l.source.Has(l.prefix+name+".gamma") {
		weight, bias = ".gamma", ".beta"
	}
	return layerNorm{l.floats(name+weight, size), l.floats(name+bias, size)}
}

// linear reads linear layers with the same input and joins them into one.
func (l *loader) linear(rows, columns int, names ...string) *kernel.Matrix {
	var all, bias []float32
	for _, name := range names {
		all = append(all, l.floats(name+".weight", rows, columns)...)
		bias = append(bias, l.floats(name+".bias", rows)...)
	}
	if l.err != nil {
		return nil
	}
	if l.int8 {
		return l.kernels.Int8(all, rows*len(names), columns, bias)
	}
	return l.kernels.Float32(all, rows*len(names), columns, bias)
}

func (l *loader) table(name string, rows, columns int) table {
	t := table{hidden: columns, tensor: l.tensor(name, rows, columns)}
	if l.err != nil || !l.int8 {
		return t
	}
	t.codes, t.scales = make([]int8, rows*columns), make([]float32, rows)
	row := make([]float32, columns)
	for id := range rows {
		for i := range row {
			row[i] = t.tensor.Float(id*columns + i)
		}
		t.scales[id] = kernel.Quantise(t.codes[id*columns:(id+1)*columns], row)
	}
	t.tensor = weights.Tensor{}
	return t
}
