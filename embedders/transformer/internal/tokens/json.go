package tokens

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"
)

const (
	maxNesting = 16  // of nested normalizers and pre-tokenizers
	maxSteps   = 32  // of normalizers, and of pre-tokenizers
	maxPattern = 200 // bytes of a pattern, and of its replacement
)

// document is tokenizer.json.
type document struct {
	Added         []jsonAdded     `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Model         json.RawMessage `json:"model"`
}

type jsonAdded struct {
	ID         int64  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Left       bool   `json:"lstrip"`
	Right      bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
}

// jsonPart is a normalizer, pre-tokenizer or post-processor: its type, and the fields of all known types.
type jsonPart struct {
	Type          string            `json:"type"`
	Normalizers   []json.RawMessage `json:"normalizers"`
	PreTokenizers []json.RawMessage `json:"pretokenizers"`
	Processors    []json.RawMessage `json:"processors"`

	CleanText    *bool  `json:"clean_text"`
	Chinese      *bool  `json:"handle_chinese_chars"`
	StripAccents *bool  `json:"strip_accents"`
	Lowercase    *bool  `json:"lowercase"`
	Left         *bool  `json:"strip_left"`
	Right        *bool  `json:"strip_right"`
	CharsMap     []byte `json:"precompiled_charsmap"`
	Prepend      string `json:"prepend"`
	Content      string `json:"content"`
	Pattern      struct {
		String *string
		Regex  *string
	} `json:"pattern"`

	Replacement    string  `json:"replacement"`
	PrependScheme  *string `json:"prepend_scheme"`
	AddPrefixSpace *bool   `json:"add_prefix_space"`
	Split          *bool   `json:"split"`

	Single  []jsonPiece                      `json:"single"`
	Special map[string]struct{ IDs []int64 } `json:"special_tokens"`
	CLS     *jsonPair                        `json:"cls"`
	SEP     *jsonPair                        `json:"sep"`
}

// jsonPiece is a piece of a template: the text, or a special token.
type jsonPiece struct {
	Sequence *struct{ ID string }
	Special  *struct{ ID string } `json:"SpecialToken"`
}

// jsonPair is a special token with its id, written as a list of both.
type jsonPair struct {
	text string
	id   int64
}

func (p *jsonPair) UnmarshalJSON(data []byte) error {
	var both []json.RawMessage
	if err := json.Unmarshal(data, &both); err != nil {
		return err
	}
	if len(both) != 2 {
		return fmt.Errorf("a list of %d; expected a token and its id", len(both))
	}
	return errors.Join(json.Unmarshal(both[0], &p.text), json.Unmarshal(both[1], &p.id))
}

// ReadJSON makes a tokenizer from the contents of tokenizer.json.
func ReadJSON(data []byte) (*Tokenizer, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	t := &Tokenizer{}
	var err error
	if t.model, err = readModel(d.Model); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	t.size = t.model.size()
	if err := t.readNormalizer(d.Normalizer, 0); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	if err := t.readPreTokenizer(d.PreTokenizer, 0); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	if err := t.readPostProcessor(d.PostProcessor, 0); err != nil {
		return nil, fmt.Errorf("post_processor: %w", err)
	}
	return t, t.addTokens(d.Added)
}

func (t *Tokenizer) addTokens(tokens []jsonAdded) error {
	if len(tokens) > 10_000 {
		return fmt.Errorf("added_tokens: %d; expected at most 10,000", len(tokens))
	}
	for _, a := range tokens {
		if a.ID < 0 || a.ID >= maxVocabulary {
			return fmt.Errorf("added_tokens: %.40q has the id %d; expected 0 to %d", a.Content, a.ID, maxVocabulary-1)
		}
		token := addedToken{id: int32(a.ID), text: a.Content, singleWord: a.SingleWord, left: a.Left, right: a.Right}
		t.size = max(t.size, int(a.ID)+1)
		if !a.Normalized {
			t.raw.add(token)
			continue
		}
		for _, change := range t.normalize {
			token.text = change(token.text)
		}
		t.normal.add(token)
	}
	for _, id := range append(append([]int32{}, t.before...), t.after...) {
		t.size = max(t.size, int(id)+1)
	}
	return nil
}

func isNull(data json.RawMessage) bool { return len(data) == 0 || bytes.Equal(data, []byte("null")) }

func readModel(data json.RawMessage) (model, error) {
	if isNull(data) {
		return nil, errors.New("it is missing")
	}
	var m struct {
		Type     string          `json:"type"`
		Unknown  *string         `json:"unk_token"`
		Inside   *string         `json:"continuing_subword_prefix"`
		MaxWord  *int            `json:"max_input_chars_per_word"`
		UnkID    *int            `json:"unk_id"`
		Fallback bool            `json:"byte_fallback"`
		Vocab    json.RawMessage `json:"vocab"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	switch {
	case m.Type == "Unigram" || m.Type == "" && m.UnkID != nil:
		if m.Fallback {
			return nil, errors.New("byte_fallback is true; only models without it are supported")
		}
		return readUnigram(m.Vocab, m.UnkID)
	case m.Type == "WordPiece" || m.Type == "" && m.Inside != nil:
		var ids map[string]int32
		if err := json.Unmarshal(m.Vocab, &ids); err != nil {
			return nil, fmt.Errorf("vocab: %w", err)
		}
		for piece, id := range ids {
			if id < 0 || id >= maxVocabulary {
				return nil, fmt.Errorf("vocab: %.40q has the id %d; expected 0 to %d", piece, id, maxVocabulary-1)
			}
		}
		maxWord := or(m.MaxWord, 100)
		if maxWord < 1 {
			return nil, fmt.Errorf("max_input_chars_per_word is %d; expected a positive number", maxWord)
		}
		return newWordPiece(ids, or(m.Unknown, "[UNK]"), or(m.Inside, "##"), maxWord)
	}
	return nil, fmt.Errorf("type %.40q is not supported; WordPiece and Unigram are", m.Type)
}

func or[T any](given *T, otherwise T) T {
	if given == nil {
		return otherwise
	}
	return *given
}

func readUnigram(vocab json.RawMessage, unknown *int) (model, error) {
	var entries []unigramEntry
	if err := json.Unmarshal(vocab, &entries); err != nil {
		return nil, fmt.Errorf("vocab: %w", err)
	}
	if len(entries) > maxVocabulary {
		return nil, fmt.Errorf("vocab: %d pieces; expected at most %d", len(entries), maxVocabulary)
	}
	pieces, scores := make([]string, len(entries)), make([]float64, len(entries))
	for i, e := range entries {
		pieces[i], scores[i] = e.piece, e.score
	}
	return newUnigram(pieces, scores, nil, or(unknown, -1))
}

// unigramEntry is a piece with its score, written as a list of both.
type unigramEntry struct {
	piece string
	score float64
}

func (e *unigramEntry) UnmarshalJSON(data []byte) error {
	both := [2]any{&e.piece, &e.score}
	list := both[:]
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	if len(list) != 2 {
		return fmt.Errorf("a list of %d; expected a piece and its score", len(list))
	}
	return nil
}

func readPart(data json.RawMessage, depth int) (p jsonPart, err error) {
	if depth > maxNesting {
		return p, fmt.Errorf("nested more than %d deep", maxNesting)
	}
	return p, json.Unmarshal(data, &p)
}

func (t *Tokenizer) readNormalizer(data json.RawMessage, depth int) error {
	if isNull(data) {
		return nil
	}
	p, err := readPart(data, depth)
	if err != nil {
		return err
	}
	if len(t.normalize) > maxSteps {
		return fmt.Errorf("more than %d steps", maxSteps)
	}
	add := func(steps ...step) { t.normalize = append(t.normalize, steps...) }
	switch p.Type {
	case "Sequence":
		for _, each := range p.Normalizers {
			if err := t.readNormalizer(each, depth+1); err != nil {
				return err
			}
		}
	case "BertNormalizer":
		lowercase := or(p.Lowercase, true)
		add(bertSteps(or(p.CleanText, true), or(p.Chinese, true), or(p.StripAccents, lowercase), lowercase)...)
	case "Lowercase":
		add(lower)
	case "NFC":
		add(norm.NFC.String)
	case "NFD":
		add(norm.NFD.String)
	case "NFKC":
		add(norm.NFKC.String)
	case "NFKD":
		add(norm.NFKD.String)
	case "StripAccents":
		add(removeAllMarks)
	case "Strip":
		add(trimmer(or(p.Left, true), or(p.Right, true)))
	case "Nmt":
		add(nmt)
	case "Prepend":
		if len(p.Prepend) > maxPattern {
			return fmt.Errorf("type Prepend: the text has %d bytes; expected at most %d", len(p.Prepend), maxPattern)
		}
		add(func(text string) string {
			if text == "" {
				return ""
			}
			return p.Prepend + text
		})
	case "Precompiled":
		if len(p.CharsMap) == 0 {
			return nil
		}
		chars, err := newCharsMap(p.CharsMap)
		if err != nil {
			return err
		}
		add(chars.replace)
	case "Replace":
		replace, err := replacer(p)
		if err != nil {
			return err
		}
		add(replace)
	default:
		return fmt.Errorf("type %.40q is not supported; BertNormalizer, Precompiled, Replace, Strip, Lowercase, the Unicode "+
			"forms and a Sequence of them are", p.Type)
	}
	return nil
}

// replacer replaces a string, or the matches of a regular expression.
func replacer(p jsonPart) (step, error) {
	if n := max(len(p.Content), len(or(p.Pattern.String, "")), len(or(p.Pattern.Regex, ""))); n > maxPattern {
		return nil, fmt.Errorf("type Replace: the pattern or the content has %d bytes; expected at most %d", n,
			maxPattern)
	}
	if p.Pattern.String != nil {
		if *p.Pattern.String == "" {
			return nil, errors.New("type Replace: the pattern is empty")
		}
		return strings.NewReplacer(*p.Pattern.String, p.Content).Replace, nil
	}
	if p.Pattern.Regex == nil {
		return nil, errors.New("type Replace: the pattern is neither a String nor a Regex")
	}
	expression, err := regexp.Compile(*p.Pattern.Regex)
	if err != nil {
		return nil, fmt.Errorf("type Replace: %w", err)
	}
	return func(text string) string { return expression.ReplaceAllLiteralString(text, p.Content) }, nil
}

func (t *Tokenizer) readPreTokenizer(data json.RawMessage, depth int) error {
	if isNull(data) {
		return nil
	}
	p, err := readPart(data, depth)
	if err != nil {
		return err
	}
	if len(t.split) > maxSteps {
		return fmt.Errorf("more than %d steps", maxSteps)
	}
	switch p.Type {
	case "Sequence":
		for _, each := range p.PreTokenizers {
			if err := t.readPreTokenizer(each, depth+1); err != nil {
				return err
			}
		}
	case "BertPreTokenizer":
		t.split = append(t.split, splitBERT)
	case "WhitespaceSplit":
		t.split = append(t.split, splitSpace)
	case "Metaspace":
		scheme := "always"
		if !or(p.AddPrefixSpace, true) {
			scheme = "never"
		}
		scheme = or(p.PrependScheme, scheme)
		if scheme != "always" && scheme != "first" && scheme != "never" {
			return fmt.Errorf("type Metaspace: prepend_scheme is %.40q; expected always, first or never", scheme)
		}
		if p.Replacement == "" {
			p.Replacement = blank
		}
		if len(p.Replacement) > 4 {
			return fmt.Errorf("type Metaspace: replacement is %.40q; expected one character", p.Replacement)
		}
		t.split = append(t.split, metaspace(p.Replacement, scheme, or(p.Split, true)))
	default:
		return fmt.Errorf("type %.40q is not supported; BertPreTokenizer, WhitespaceSplit, Metaspace and a Sequence of "+
			"them are",
			p.Type)
	}
	return nil
}

func (t *Tokenizer) readPostProcessor(data json.RawMessage, depth int) error {
	if isNull(data) {
		return nil
	}
	p, err := readPart(data, depth)
	if err != nil {
		return err
	}
	switch p.Type {
	case "Sequence":
		for _, each := range p.Processors {
			if err := t.readPostProcessor(each, depth+1); err != nil {
				return err
			}
		}
		return nil
	case "BertProcessing", "RobertaProcessing":
		if p.CLS == nil || p.SEP == nil {
			return fmt.Errorf("%s: cls or sep is missing", p.Type)
		}
		if t.before, err = appendID(t.before, p.CLS.id); err == nil {
			t.after, err = appendID(t.after, p.SEP.id)
		}
		return err
	case "TemplateProcessing":
		return t.readTemplate(p)
	case "ByteLevel":
		return errors.New("type ByteLevel is not supported; such models cut texts into bytes")
	}
	return fmt.Errorf("type %.40q is not supported; TemplateProcessing, BertProcessing and RobertaProcessing are",
		p.Type)
}

// readTemplate finds the tokens before and after the text.
func (t *Tokenizer) readTemplate(p jsonPart) error {
	seen := false
	for _, piece := range p.Single {
		if piece.Sequence != nil {
			if seen {
				return errors.New("TemplateProcessing: the template holds the text twice")
			}
			seen = true
			continue
		}
		if piece.Special == nil {
			return errors.New("TemplateProcessing: a piece of the template is neither the text nor a special token")
		}
		for _, id := range p.Special[piece.Special.ID].IDs {
			var err error
			if seen {
				t.after, err = appendID(t.after, id)
			} else {
				t.before, err = appendID(t.before, id)
			}
			if err != nil {
				return err
			}
		}
	}
	if !seen {
		return errors.New("TemplateProcessing: the template does not hold the text")
	}
	return nil
}

func appendID(ids []int32, id int64) ([]int32, error) {
	if id < 0 || id >= maxVocabulary || len(ids) >= 16 {
		return nil, fmt.Errorf("special token %d has the id %d; expected at most 16 of 0 to %d", len(ids), id,
			maxVocabulary-1)
	}
	return append(ids, int32(id)), nil
}
