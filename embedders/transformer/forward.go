package transformer

import (
	"context"
	"math"

	"github.com/souvenir-ai/souvenir/embedders/transformer/internal/kernel"
)

// workspace is the memory in which one goroutine computes. Its size depends on the tokens of a batch.
type workspace struct {
	kernel.Attention
	states, qkv, mixed, wide []float32
}

// forward computes the last layer's token vectors of several texts, one after the other without padding. Attention
// sees the tokens of its own text only.
func (n *network) forward(ctx context.Context, w *workspace, texts [][]int32) ([]float32, error) {
	total := 0
	for _, ids := range texts {
		total += len(ids)
	}
	h, k := n.Hidden, n.kernels
	w.states, w.mixed = sized(w.states, total*h), sized(w.mixed, total*h)
	w.qkv, w.wide = sized(w.qkv, total*3*h), sized(w.wide, total*n.Intermediate)
	n.embed(w.states, texts)
	eps, size := float32(n.Epsilon), h/n.Heads
	for i := range n.layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l := &n.layers[i]
		k.Multiply(&w.Workspace, l.qkv, w.qkv, w.states, total)
		at := 0
		for _, ids := range texts {
			for head := range n.Heads {
				q := w.qkv[at*3*h+head*size:]
				k.Attend(&w.Attention, w.mixed[at*h+head*size:], h, q, q[h:], q[2*h:], 3*h, len(ids), size)
			}
			at += len(ids)
		}
		// The states become the residual; the result is in qkv, which is free again.
		next := w.qkv[:total*h]
		k.Multiply(&w.Workspace, l.attention, next, w.mixed, total)
		n.addAndNorm(next, w.states, l.attentionNorm, eps)
		k.Multiply(&w.Workspace, l.intermediate, w.wide, next, total)
		k.GELU(w.wide)
		k.Multiply(&w.Workspace, l.output, w.states, w.wide, total)
		n.addAndNorm(w.states, next, l.outputNorm, eps)
	}
	return w.states, nil
}

// addAndNorm adds the residual to each row, and normalises the sum with the layer's weights.
func (n *network) addAndNorm(x, residual []float32, norm layerNorm, eps float32) {
	for at := 0; at < len(x); at += n.Hidden {
		n.kernels.LayerNorm(x[at:at+n.Hidden], residual[at:at+n.Hidden], norm.weight, norm.bias, eps)
	}
}

// embed writes the sum of each token's vector and its position's, normalised.
func (n *network) embed(out []float32, texts [][]int32) {
	h, at := n.Hidden, 0
	first := n.firstPosition()
	for _, ids := range texts {
		position := first
		for _, id := range ids {
			row := out[at : at+h]
			n.words.row(row, int(id))
			p := position
			if first > 0 && int(id) == n.Padding { // XLM-R does not count padding, even if a text contains its token
				p = n.Padding
			} else {
				position++
			}
			n.kernels.LayerNorm(row, n.positions[p*h:(p+1)*h], n.norm.weight, n.norm.bias, float32(n.Epsilon))
			at += h
		}
	}
}

// pool makes one unit vector of a text's token vectors.
func pool(out, states []float32, pooling Pooling) {
	h := len(out)
	copy(out, states[:h])
	if pooling == Mean {
		for at := h; at < len(states); at += h {
			for i, x := range states[at : at+h] {
				out[i] += x
			}
		}
	}
	normalise(out)
}

// normalise gives a vector unit length; a vector of zeros stays unchanged.
func normalise(v []float32) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	scale := 1 / math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) * scale)
	}
}

// centre subtracts a mean from a vector, and gives it unit length again. Without a mean it stays unchanged.
func centre(v, mean []float32) {
	if mean == nil {
		return
	}
	for i := range v {
		v[i] -= mean[i]
	}
	normalise(v)
}

func sized(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}
