package tokens

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// fixture unpacks a file of the fixtures.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "testdata", name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// wanted is a text with its ids from the reference.
type wanted struct {
	Text string  `json:"text"`
	IDs  []int32 `json:"ids"`
}

func wantedIDs(t testing.TB, name string) []wanted {
	t.Helper()
	var all []wanted
	if err := json.Unmarshal(fixture(t, name), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("%s has %d texts, want at least 100", name, len(all))
	}
	return all
}

func made(t *Tokenizer, err error) func(testing.TB) *Tokenizer {
	return func(tb testing.TB) *Tokenizer {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return t
	}
}

// TestIDsAreThoseOfTheReference compares with the libraries tokenizers and SentencePiece: 14 languages and more,
// marks, emoji, control characters, long words, special tokens in texts.
func TestIDsAreThoseOfTheReference(t *testing.T) {
	vocabulary, err := ReadVocabulary(bytes.NewReader(fixture(t, "bert/vocab.txt")))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, ids string
		tokenizer *Tokenizer
	}{
		{"WordPiece of tokenizer.json", "bert/ids.json", made(ReadJSON(fixture(t, "bert/tokenizer.json")))(t)},
		{"WordPiece of vocab.txt", "bert/ids.json", made(BERT(vocabulary, true))(t)},
		{"Unigram of tokenizer.json", "xlmr/ids.json", made(ReadJSON(fixture(t, "xlmr/tokenizer.json")))(t)},
		{"SentencePiece", "xlmr/sentencepiece.json", made(SentencePiece(fixture(t, "xlmr/sentencepiece.bpe.model")))(t)},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, want := range wantedIDs(t, c.ids) {
				got := c.tokenizer.Encode(nil, want.Text, 0)
				if !slices.Equal(got, want.IDs) {
					t.Errorf("%+q:\n got %v\nwant %v", want.Text, got, want.IDs)
				}
				for _, id := range got {
					if int(id) >= c.tokenizer.Size() {
						t.Errorf("%+q has the id %d; Size is %d; want it below", want.Text, id, c.tokenizer.Size())
					}
				}
			}
		})
	}
}

// TestLongTextsAreCutBeforeTheirEnd keeps the special tokens around every text.
func TestLongTextsAreCutBeforeTheirEnd(t *testing.T) {
	tokenizer := made(ReadJSON(fixture(t, "bert/tokenizer.json")))(t)
	for _, want := range wantedIDs(t, "bert/ids.json") {
		for _, limit := range []int{2, 3, 7, 20, len(want.IDs), len(want.IDs) + 1} {
			cut := want.IDs
			if len(cut) > limit {
				cut = append(slices.Clone(cut[:limit-1]), cut[len(cut)-1])
			}
			if got := tokenizer.Encode([]int32{7}, want.Text, limit); !slices.Equal(got[1:], cut) || got[0] != 7 {
				t.Errorf("%+q, limit %d:\n got %v\nwant %v", want.Text, limit, got[1:], cut)
			}
		}
	}
	if got := tokenizer.Encode(nil, "a", 1); len(got) != 1 {
		t.Errorf("limit 1 gives %v, want a length of 1", got)
	}
}

// TestInvalidTextsAreEncoded encodes bytes that are not UTF-8.
func TestInvalidTextsAreEncoded(t *testing.T) {
	for _, name := range []string{"bert/tokenizer.json", "xlmr/tokenizer.json"} {
		tokenizer := made(ReadJSON(fixture(t, name)))(t)
		for _, text := range []string{"\xff", "a\xc3", "\xed\xa0\x80 b", "\xf0\x9f\x98"} {
			if got := tokenizer.Encode(nil, text, 0); len(got) < 2 {
				t.Errorf("%s: %q gives %v, want at least a length of 2", name, text, got)
			}
		}
	}
}
