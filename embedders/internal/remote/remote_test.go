package remote

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// settings returns the settings of a working service.
func settings() Settings {
	return Settings{Provider: "made-up", Model: "m", Dimensions: 4, BaseURL: "https://example.com/v1", Key: "key",
		MaxTexts: 10, MaxTokens: 1000}
}

func TestNewNamesTheWrongOption(t *testing.T) {
	for _, test := range []struct {
		change func(*Settings)
		want   string
	}{
		{func(s *Settings) { s.Model = "" }, "Model is empty"},
		{func(s *Settings) { s.Dimensions = 0 }, `Dimensions is 0, and the model "m"`},
		{func(s *Settings) { s.Dimensions = -1 }, "Dimensions is -1"},
		{func(s *Settings) { s.Dimensions = 16385 }, "Dimensions is 16385"},
		{func(s *Settings) { s.MaxInput = 199 }, "MaxInput is 199"},
		{func(s *Settings) { s.MaxInput = 8001 }, "MaxInput is 8001"},
		{func(s *Settings) { s.Timeout = -1 }, "Timeout is -1ns"},
		{func(s *Settings) { s.BaseURL = "example.com" }, "BaseURL is not a URL"},
		{func(s *Settings) { s.BaseURL = "https://a:b@example.com" }, "BaseURL has a user"},
		{func(s *Settings) { s.BaseURL = "https://example.com?key=1" }, "BaseURL has a user"},
		{func(s *Settings) { s.Key = " \n" }, "Key is empty"},
		{func(s *Settings) { s.Key = "a\nb" }, "Key has"},
	} {
		s := settings()
		test.change(&s)
		if _, err := New(s); err == nil || !strings.HasPrefix(err.Error(), "made-up: "+test.want) {
			t.Errorf("got the error %v, want made-up: %s", err, test.want)
		}
	}
	if _, err := New(settings()); err != nil {
		t.Errorf("valid settings: got %v, want no error", err)
	}
}

func TestPromptsAreThoseOfTheModelAndChangeItsIdentity(t *testing.T) {
	none := ""
	for _, test := range []struct {
		model           string
		given           *string
		query, document string
	}{
		{"nomic-embed-text:v1.5", nil, "search_query: ", "search_document: "},
		{"intfloat/multilingual-e5-small", nil, "query: ", "passage: "},
		{"BAAI/bge-m3", nil, "", ""},
		{"BAAI/bge-small-en-v1.5", nil, retrievalInstruction, ""},
		{"snowflake-arctic-embed2", nil, "query: ", ""},
		{"text-embedding-3-small", nil, "", ""},
		{"nomic-embed-text", &none, "", ""},
	} {
		got := PromptsOf(test.model, test.given, test.given)
		if want := (Prompts{test.query, test.document}); got != want {
			t.Errorf("prompts of %s: got %q, want %q", test.model, got, want)
		}
	}
	s := settings()
	plain, _ := New(s)
	s.Prompts.Query = "query: "
	prompted, _ := New(s)
	s.BaseURL = "http://127.0.0.1"
	elsewhere, _ := New(s)
	if plain.Model() == prompted.Model() {
		t.Errorf("a changed prompt keeps the identity %q, want another one", plain.Model())
	}
	if prompted.Model() != elsewhere.Model() {
		t.Errorf("another address has the identity %q, want %q", elsewhere.Model(), prompted.Model())
	}
}

func TestIndexesAreEachOfThemOnce(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[2]}]}`: "two vectors have the index 0",
		`{"data":[{"index":1,"embedding":[1]}]}`:                             "has the index 1",
		`{"data":[{"index":-1,"embedding":[1]}]}`:                            "has the index -1",
		`{"data":[{"index":0}]}`:                                             "vector 0 is missing",
		`{"data":[{"index":0,"embedding":null}]}`:                            "expected a list of numbers",
	} {
		if got, err := DecodeIndexed([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v and the error %v, want an error with %q", body, got, err, want)
		}
	}
}

func TestTextsAreCutAtACharacterAndBatchesAtTheTokens(t *testing.T) {
	if got := cut(strings.Repeat("語", 5000)); len(got) > maxText || !utf8.ValidString(got) || len(got) < maxText-3 {
		t.Errorf("cut: got %d bytes, valid %v, want %d, less a part of a character", len(got), utf8.ValidString(got), maxText)
	}
	e, err := New(settings())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ size, texts, want int }{{2000, 3, 1}, {400, 3, 2}, {10, 30, 10}, {10, 3, 3}} {
		texts := make([]string, test.texts)
		for i := range texts {
			texts[i] = strings.Repeat("x", test.size)
		}
		if got := e.fitting(texts); got != test.want {
			t.Errorf("%d texts of %d bytes: %d fit into a request, want %d", test.texts, test.size, got, test.want)
		}
	}
}

func FuzzDecodeIndexed(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":0,"embedding":[0.5, -1e-3]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		vectors, err := DecodeIndexed(body)
		for i, v := range vectors {
			if err == nil && v == nil {
				t.Errorf("vector %d of %q is nil, want an error or a vector", i, body)
			}
		}
	})
}
