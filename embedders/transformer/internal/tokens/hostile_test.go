package tokens

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// TestBadTokenizersAreErrors checks what each error names.
func TestBadTokenizersAreErrors(t *testing.T) {
	const wordPieceModel = `"model":{"type":"WordPiece","unk_token":"[UNK]","vocab":{"[UNK]":0,"a":1}}`
	const unigramModel = `"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1]]}`
	deep := strings.Repeat(`{"type":"Sequence","normalizers":[`, 40) + strings.Repeat("]}", 40)
	trie := base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint32(nil, 1<<30))
	for name, c := range map[string]struct{ data, want string }{
		"no JSON":          {`{`, "unexpected end"},
		"endless nesting":  {strings.Repeat("[", 20_000), "exceeded max depth"},
		"no model":         {`{}`, "model: it is missing"},
		"another model":    {`{"model":{"type":"BPE"}}`, `model: type "BPE" is not supported`},
		"no unknown piece": {`{"model":{"type":"WordPiece","vocab":{"a":0}}}`, `has no "[UNK]"`},
		"a negative id":    {`{"model":{"type":"WordPiece","vocab":{"[UNK]":-1}}}`, "has the id -1"},
		"a huge id":        {`{"model":{"type":"WordPiece","vocab":{"[UNK]":2000000000}}}`, "has the id 2000000000"},
		"no unk_id":        {`{"model":{"type":"Unigram","vocab":[["a",0]]}}`, "unk_id is -1"},
		"a piece alone":    {`{"model":{"type":"Unigram","unk_id":0,"vocab":[["a"]]}}`, "a list of 1"},
		"a long piece": {`{"model":{"type":"Unigram","unk_id":0,"vocab":[["` + strings.Repeat("a", 2000) + `",0]]}}`,
			"has 2000 bytes"},
		"bytes": {`{"model":{"type":"Unigram","unk_id":0,"byte_fallback":true,"vocab":[["a",0]]}}`,
			"byte_fallback"},
		"deep normalizers": {`{"normalizer":` + deep + `,` + wordPieceModel + `}`,
			"normalizer: nested more than 16 deep"},
		"another normalizer": {`{"normalizer":{"type":"Magic"},` + wordPieceModel + `}`,
			`normalizer: type "Magic" is not supported`},
		"a bad expression": {`{"normalizer":{"type":"Replace","pattern":{"Regex":"("},"content":""},` + wordPieceModel +
			`}`, "Replace"},
		"a long replacement": {`{"normalizer":{"type":"Replace","pattern":{"String":"a"},"content":"` +
			strings.Repeat("b", 300) + `"},` + wordPieceModel + `}`, "has 300 bytes"},
		"an empty pattern": {`{"normalizer":{"type":"Replace","pattern":{"String":""},"content":"b"},` + wordPieceModel +
			`}`, "the pattern is empty"},
		"a short table": {`{"normalizer":{"type":"Precompiled","precompiled_charsmap":"AA=="},` + unigramModel + `}`,
			"charsmap has 1 bytes"},
		"a lying table": {`{"normalizer":{"type":"Precompiled","precompiled_charsmap":"` + trie + `"},` + unigramModel +
			`}`, "1073741824 bytes, of 0"},
		"another pre-tokenizer": {`{"pre_tokenizer":{"type":"ByteLevel"},` + wordPieceModel + `}`,
			`pre_tokenizer: type "ByteLevel"`},
		"another scheme": {`{"pre_tokenizer":{"type":"Metaspace","prepend_scheme":"maybe"},` + unigramModel + `}`,
			"prepend_scheme is"},
		"a template of two": {`{"post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}},` +
			`{"Sequence":{"id":"A"}}]},` + wordPieceModel + `}`, "holds the text twice"},
		"a template of none": {`{"post_processor":{"type":"TemplateProcessing","single":[]},` + wordPieceModel + `}`,
			"does not hold the text"},
		"a negative special": {`{"post_processor":{"type":"BertProcessing","cls":["[CLS]",-5],"sep":["[SEP]",1]},` +
			wordPieceModel + `}`, "has the id -5"},
		"a negative token": {`{"added_tokens":[{"id":-1,"content":"x"}],` + wordPieceModel + `}`, "added_tokens"},
	} {
		if _, err := ReadJSON([]byte(c.data)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got the error %v, want one with %q", name, err, c.want)
		}
	}
	for name, data := range map[string]string{"empty": "", "text": "hello, this is text",
		"pieces of nothing": "\x0a\x00\x0a\x00\x0a\x00\x0a\x00"} {
		if _, err := SentencePiece([]byte(data)); err == nil {
			t.Errorf("%s: a SentencePiece model is read of it, want an error", name)
		}
	}
}

// TestGrowingTextsAreCut has a normalizer that lengthens texts in each of its steps.
func TestGrowingTextsAreCut(t *testing.T) {
	longtest.Only(t)
	double := `{"type":"Replace","pattern":{"String":"a"},"content":"` + strings.Repeat("a", 100) + `"}`
	data := fmt.Sprintf(`{"normalizer":{"type":"Sequence","normalizers":[%s]},"pre_tokenizer":{"type":"BertPreTokenizer"},
		"model":{"type":"WordPiece","vocab":{"[UNK]":0,"a":1}}}`, strings.TrimSuffix(strings.Repeat(double+",", 10), ","))
	tokenizer, err := ReadJSON([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	if got := tokenizer.Encode(nil, "a a", 10); len(got) != 1 {
		t.Errorf("got ids %v, want one", got)
	}
}

// FuzzTokenizer changes tokenizer.json, and the text.
func FuzzTokenizer(f *testing.F) {
	f.Add(`{"normalizer":{"type":"BertNormalizer"},"pre_tokenizer":{"type":"BertPreTokenizer"},`+
		`"model":{"type":"WordPiece","vocab":{"[UNK]":0,"a":1,"##b":2}}}`, "ab \u00e4 \u4e2d", 5)
	f.Add(`{"added_tokens":[{"id":3,"content":"<m>","lstrip":true,"rstrip":true}],"pre_tokenizer":{"type":"Metaspace"},`+
		`"model":{"type":"Unigram","unk_id":0,"vocab":[["u",0],["\u2581",-1],["a",-2]]}}`, "a  <m> b", 0)
	f.Fuzz(func(t *testing.T, data, text string, limit int) {
		tokenizer, err := ReadJSON([]byte(data))
		if err != nil {
			return
		}
		check(t, tokenizer, text, limit)
	})
}

// FuzzEncode gives any text to the fixtures' tokenizers.
func FuzzEncode(f *testing.F) {
	tokenizers := []*Tokenizer{made(ReadJSON(fixture(f, "bert/tokenizer.json")))(f),
		made(ReadJSON(fixture(f, "xlmr/tokenizer.json")))(f),
		made(SentencePiece(fixture(f, "xlmr/sentencepiece.bpe.model")))(f)}
	for _, w := range wantedIDs(f, "xlmr/ids.json") {
		f.Add(w.Text, 20)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		for _, tokenizer := range tokenizers {
			check(t, tokenizer, text, limit)
		}
	})
}

// FuzzSentencePiece changes the model file.
func FuzzSentencePiece(f *testing.F) {
	f.Add(fixture(f, "xlmr/sentencepiece.bpe.model"), "caf\u00e9 \uff21")
	f.Add([]byte("\x0a\x09\x0a\x05<unk>\x18\x02\x0a\x07\x0a\x03<s>"+
		"\x18\x03\x0a\x08\x0a\x04</s>\x18\x03\x0a\x08\x0a\x01a\x15\x00\x00\x80\xbf"), "a b")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		if tokenizer, err := SentencePiece(data); err == nil {
			check(t, tokenizer, text, 0)
		}
	})
}

func check(t *testing.T, tokenizer *Tokenizer, text string, limit int) {
	t.Helper()
	ids := tokenizer.Encode(nil, text, limit)
	if limit > 0 && len(ids) > limit {
		t.Errorf("got %d ids, want at most %d", len(ids), limit)
	}
	for _, id := range ids {
		if id < 0 || int(id) >= tokenizer.Size() {
			written, _ := json.Marshal(text)
			t.Errorf("%s has the id %d; Size is %d; want it below", written, id, tokenizer.Size())
		}
	}
}
