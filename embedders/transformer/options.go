package transformer

import (
	"fmt"
	"runtime"
	"slices"
)

// Precision is how the weights are stored and multiplied.
type Precision int

// The values of [Precision].
const (
	Float32 Precision = iota // as in the reference; 4 bytes a weight
	Int8                     // about a quarter of the memory, and faster; vectors differ a little
)

func (p Precision) String() string {
	switch p {
	case Float32:
		return "float32"
	case Int8:
		return "int8"
	}
	return fmt.Sprintf("Precision(%d)", int(p))
}

// Pooling is how the token vectors of a text become one vector.
type Pooling int

// The values of [Pooling].
const (
	PoolingOfModel Pooling = iota // as in 1_Pooling/config.json; the mean if there is no such file
	Mean                          // the mean of all tokens
	CLS                           // the first token
)

func (p Pooling) String() string {
	switch p {
	case PoolingOfModel:
		return "of the model"
	case Mean:
		return "mean"
	case CLS:
		return "cls"
	}
	return fmt.Sprintf("Pooling(%d)", int(p))
}

// Options change how [Open] reads a model. The zero value of a field means its documented default; a nil *Options
// means all defaults.
type Options struct {
	// Precision is how weights are stored and multiplied. The default is Float32.
	Precision Precision

	// Pooling is how token vectors become one. The default is that of the model's files.
	Pooling Pooling

	// QueryPrefix and DocumentPrefix are prefixes for all texts of their purpose. Nil means the prefixes that the model
	// was trained with: the prompts of config_sentence_transformers.json (query; document or passage), "query: " and
	// "passage: " for models whose name or folder contains e5, and otherwise none.
	QueryPrefix, DocumentPrefix *string

	// MaxTokens is the maximum number of tokens of a text, including special tokens; a longer text is cut at its end.
	// Zero means that of the model's files; it cannot exceed the model's number of positions.
	MaxTokens int

	// Workers is the number of goroutines that compute at once, in all calls together. Zero means GOMAXPROCS.
	Workers int

	// Mean is subtracted from the vector of every text, which then gets unit length again. The cosines of some models
	// are close together (those of e5 are between 0.7 and 1), so they add little to other evidence; without the mean
	// they spread around 0. [Embedder.Mean] computes one; keep it with the store, since a different mean counts as a
	// different model. Nil means no centring.
	Mean []float32

	// Name is the name in [Embedder.Model]. Empty means the name in config.json, or that of the folder.
	Name string
}

func (o *Options) withDefaults() (Options, error) {
	var full Options
	if o != nil {
		full = *o
	}
	switch {
	case full.Precision != Float32 && full.Precision != Int8:
		return full, fmt.Errorf("transformer: Precision is %v; expected Float32 or Int8", full.Precision)
	case full.Pooling < PoolingOfModel || full.Pooling > CLS:
		return full, fmt.Errorf("transformer: Pooling is %v; expected PoolingOfModel, Mean or CLS", full.Pooling)
	case full.MaxTokens < 0 || full.MaxTokens > 0 && full.MaxTokens < minTokens:
		return full, fmt.Errorf("transformer: MaxTokens is %d; expected at least %d, or 0 for the model's own",
			full.MaxTokens, minTokens)
	case full.Workers < 0 || full.Workers > 1024:
		return full, fmt.Errorf("transformer: Workers is %d; expected 1 to 1024, or 0 for GOMAXPROCS", full.Workers)
	case slices.ContainsFunc(full.Mean, notFinite):
		return full, fmt.Errorf("transformer: Mean holds %v at place %d; expected finite numbers",
			full.Mean[slices.IndexFunc(full.Mean, notFinite)], slices.IndexFunc(full.Mean, notFinite))
	case len(full.Name) > maxName:
		return full, fmt.Errorf("transformer: Name has %d bytes; expected at most %d", len(full.Name), maxName)
	}
	full.Mean = slices.Clone(full.Mean)
	if full.Workers == 0 {
		full.Workers = runtime.GOMAXPROCS(0)
	}
	return full, nil
}

func notFinite(x float32) bool { return x-x != 0 }

const (
	minTokens = 8
	maxName   = 100 // bytes
	maxPrefix = 1000
)
