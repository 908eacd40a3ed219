package transformer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// configuration is a model's shape, as in config.json.
type configuration struct {
	ModelType        string  `json:"model_type"`
	Name             string  `json:"_name_or_path"`
	Hidden           int     `json:"hidden_size"`
	Layers           int     `json:"num_hidden_layers"`
	Heads            int     `json:"num_attention_heads"`
	Intermediate     int     `json:"intermediate_size"`
	Activation       string  `json:"hidden_act"`
	Positions        int     `json:"max_position_embeddings"`
	Types            int     `json:"type_vocab_size"`
	Vocabulary       int     `json:"vocab_size"`
	Epsilon          float64 `json:"layer_norm_eps"`
	Padding          int     `json:"pad_token_id"`
	PositionEmbedded string  `json:"position_embedding_type"`
}

// The largest files that are read whole.
const (
	maxSettings  = 4 << 20
	maxTokenizer = 128 << 20
)

// readFile reads a file of the folder, up to a maximum size. The error for a missing file is fs.ErrNotExist.
func readFile(dir, name string, most int64) ([]byte, error) {
	path := filepath.Join(dir, name)
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes, the maximum of such a file", path, most)
	}
	return data, nil
}

// readJSON reads a JSON file of the folder into value, and returns its bytes. A missing file leaves value unchanged,
// and found is false.
func readJSON(dir, name string, value any) (found bool, err error) {
	data, err := readFile(dir, name, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return true, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
	}
	return true, nil
}

// readConfiguration reads config.json and checks that this package can compute such a model.
func readConfiguration(dir string) (configuration, error) {
	c := configuration{Activation: "gelu", Epsilon: 1e-12, Types: 2}
	path := filepath.Join(dir, "config.json")
	found, err := readJSON(dir, "config.json", &c)
	if err == nil && !found {
		err = fmt.Errorf("%s is missing: %q must be a folder with config.json, tokenizer.json and "+
			"model.safetensors: %w",
			path, dir, fs.ErrNotExist)
	}
	if err != nil {
		return c, err
	}
	switch c.ModelType {
	case "bert", "xlm-roberta", "camembert":
	default:
		return c, fmt.Errorf("%s: model_type is %.40q; expected bert, xlm-roberta or camembert", path, c.ModelType)
	}
	if c.Activation != "gelu" {
		return c, fmt.Errorf("%s: hidden_act is %.40q; expected gelu", path, c.Activation)
	}
	if c.PositionEmbedded != "" && c.PositionEmbedded != "absolute" {
		return c, fmt.Errorf("%s: position_embedding_type is %.40q; expected absolute", path, c.PositionEmbedded)
	}
	for _, f := range []struct {
		name              string
		value, from, most int
	}{
		{"hidden_size", c.Hidden, 1, 16_384},
		{"num_hidden_layers", c.Layers, 1, 200},
		{"num_attention_heads", c.Heads, 1, 1024},
		{"intermediate_size", c.Intermediate, 1, 65_536},
		{"max_position_embeddings", c.Positions, minTokens, 1 << 20},
		{"type_vocab_size", c.Types, 1, 64},
		{"vocab_size", c.Vocabulary, 1, 4_000_000},
		{"pad_token_id", c.Padding, 0, c.Positions - minTokens - 1},
	} {
		if f.value < f.from || f.value > f.most {
			return c, fmt.Errorf("%s: %s is %d; expected %d to %d", path, f.name, f.value, f.from, f.most)
		}
	}
	if c.Hidden%c.Heads != 0 {
		return c, fmt.Errorf("%s: hidden_size is %d and num_attention_heads %d; expected a multiple of it", path, c.Hidden,
			c.Heads)
	}
	if !(c.Epsilon > 0 && c.Epsilon < 1) {
		return c, fmt.Errorf("%s: layer_norm_eps is %v; expected a small positive number", path, c.Epsilon)
	}
	return c, nil
}

// firstPosition is the position of the first token: XLM-R counts from the position after the padding's.
func (c configuration) firstPosition() int {
	if c.ModelType == "bert" {
		return 0
	}
	return c.Padding + 1
}

// recipe is how texts become vectors, apart from the transformer itself.
type recipe struct {
	pooling         Pooling
	query, document string // prefixes
	maxTokens       int
	lowerCase       bool // of vocab.txt
}

// readRecipe reads the files of sentence-transformers; the options override them.
func readRecipe(dir string, c configuration, o Options) (recipe, error) {
	r := recipe{pooling: Mean, maxTokens: c.Positions - c.firstPosition(), lowerCase: true}
	if err := r.readPooling(dir); err != nil {
		return r, err
	}
	if o.Pooling != PoolingOfModel {
		r.pooling = o.Pooling
	}
	if err := r.readLength(dir, o); err != nil {
		return r, err
	}
	return r, r.readPrefixes(dir, c, o)
}

// readPooling reads modules.json, which names the steps after the transformer, and the settings of the pooling.
func (r *recipe) readPooling(dir string) error {
	var modules []struct {
		Path, Type string
	}
	found, err := readJSON(dir, "modules.json", &modules)
	if err != nil {
		return err
	}
	folder := "1_Pooling"
	for _, m := range modules {
		switch kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]; kind {
		case "Transformer", "Normalize":
		case "Pooling":
			folder = m.Path
		default:
			return fmt.Errorf("%s: a module is of type %.80q; expected Transformer, Pooling and Normalize",
				filepath.Join(dir, "modules.json"), m.Type)
		}
	}
	if !filepath.IsLocal(folder) {
		return fmt.Errorf("%s: the module Pooling has the path %.80q; expected a folder in the model's folder",
			filepath.Join(dir, "modules.json"), folder)
	}
	name := filepath.Join(folder, "config.json")
	modes := map[string]any{}
	there, err := readJSON(dir, name, &modes)
	if err != nil || !there {
		return err
	}
	_ = found
	var on []string
	for key, value := range modes {
		if mode, ok := strings.CutPrefix(key, "pooling_mode_"); ok && value == true {
			on = append(on, mode)
		}
	}
	if mode, ok := modes["pooling_mode"].(string); ok {
		on = append(on, mode)
	}
	if len(on) == 1 && (on[0] == "mean_tokens" || on[0] == "mean") {
		r.pooling = Mean
	} else if len(on) == 1 && (on[0] == "cls_token" || on[0] == "cls") {
		r.pooling = CLS
	} else {
		return fmt.Errorf("%s: the pooling is %v; expected cls_token or mean_tokens alone", filepath.Join(dir, name), on)
	}
	return nil
}

// readLength finds the maximum number of tokens of a text.
func (r *recipe) readLength(dir string, o Options) error {
	var sentence struct {
		Max *int `json:"max_seq_length"`
	}
	var tokenizer struct {
		Max       *float64 `json:"model_max_length"` // a number with 30 digits means none
		LowerCase *bool    `json:"do_lower_case"`
	}
	if _, err := readJSON(dir, "sentence_bert_config.json", &sentence); err != nil {
		return err
	}
	if _, err := readJSON(dir, "tokenizer_config.json", &tokenizer); err != nil {
		return err
	}
	if tokenizer.LowerCase != nil {
		r.lowerCase = *tokenizer.LowerCase
	}
	switch {
	case o.MaxTokens > 0:
		r.maxTokens = min(r.maxTokens, o.MaxTokens)
	case sentence.Max != nil && *sentence.Max >= minTokens:
		r.maxTokens = min(r.maxTokens, *sentence.Max)
	case sentence.Max == nil && tokenizer.Max != nil && *tokenizer.Max >= minTokens && *tokenizer.Max < 1e6:
		r.maxTokens = min(r.maxTokens, int(*tokenizer.Max))
	}
	return nil
}

// readPrefixes finds the prefixes of queries and documents.
func (r *recipe) readPrefixes(dir string, c configuration, o Options) error {
	var sentence struct {
		Prompts map[string]string `json:"prompts"`
	}
	if _, err := readJSON(dir, "config_sentence_transformers.json", &sentence); err != nil {
		return err
	}
	r.query, r.document = sentence.Prompts["query"], sentence.Prompts["document"]
	if r.document == "" {
		r.document = sentence.Prompts["passage"]
	}
	if r.query == "" && r.document == "" && (isE5(c.Name) || isE5(o.Name) || isE5(filepath.Base(dir))) {
		r.query, r.document = "query: ", "passage: "
	}
	if o.QueryPrefix != nil {
		r.query = *o.QueryPrefix
	}
	if o.DocumentPrefix != nil {
		r.document = *o.DocumentPrefix
	}
	if len(r.query) > maxPrefix || len(r.document) > maxPrefix {
		return fmt.Errorf("%s: a prefix has %d bytes; expected at most %d", dir, max(len(r.query), len(r.document)),
			maxPrefix)
	}
	return nil
}

// isE5 reports whether a model's name is that of an e5 model, which were trained with prefixes. Names that end in
// instruct have other prefixes.
func isE5(name string) bool {
	name = strings.ToLower(filepath.Base(name))
	return (strings.HasPrefix(name, "e5-") || strings.Contains(name, "-e5-")) && !strings.Contains(name, "instruct")
}
