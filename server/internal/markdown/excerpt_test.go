package markdown

import (
	"slices"
	"strings"
	"testing"
)

func TestExcerptsHaveNoMarks(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		want   []Span
	}{
		"a heading and emphasis": {"# Deploy window\n\nBerth is released on **Thursdays** at *two*.", []Span{
			{Text: "Deploy window", Strong: true}, {Text: " Berth is released on "}, {Text: "Thursdays", Strong: true},
			{Text: " at two. "}}},
		"lists and tasks": {"- one\n- [x] two\n1. three", []Span{{Text: "one ☑ two three "}}},
		"code": {"Run `go vet`\n\n```sh\ngo test\n```", []Span{
			{Text: "Run "}, {Text: "go vet", Code: true}, {Text: " "}, {Text: "go test ", Code: true}}},
		"links": {"See [the page](https://example.com/x) or https://example.com/y", []Span{
			{Text: "See the page or https://example.com/y "}}},
		"HTML is text": {"a <b>b</b>\n\n<div>\nc\n</div>", []Span{{Text: "a <b>b</b> <div> c </div> "}}},
		"a table":      {"|a|b|\n|-|-|\n|1|2|", []Span{{Text: "a b ", Strong: true}, {Text: "1 2 "}}},
		"not Markdown": {"2 * 3 * 4 and a_b_c", []Span{{Text: "2 * 3 * 4 and a_b_c "}}},
		"nothing":      {" \n ", nil},
	} {
		if got := ours.Excerpt(c.source); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q becomes\n%+v\nwant\n%+v", name, c.source, got, c.want)
		}
	}
}

func TestExcerptsOfHostileTextsAreBounded(t *testing.T) {
	for _, source := range []string{strings.Repeat("> ", 3000) + "x", strings.Repeat("[", 4000),
		strings.Repeat("*a ", 2000),
		strings.Repeat("|a", 2000) + "\n" + strings.Repeat("|-", 2000)} {
		length := 0
		for _, s := range ours.Excerpt(source) {
			length += len(s.Text)
		}
		if length > 2*len(source) {
			t.Errorf("%.20q…: an excerpt of %d bytes, want at most %d", source, length, 2*len(source))
		}
	}
}
