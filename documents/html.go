package documents

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"github.com/souvenir-ai/souvenir"
)

const maxToken = 1 << 20 // bytes of a tag or a piece of text

// readHTML reads the text of a page, without hidden parts. It follows tokens and builds no tree, so nesting costs
// nothing.
func readHTML(ctx context.Context, data []byte, declared string) (souvenir.DocumentText, error) {
	contentType := "text/html"
	if declared != "" {
		contentType += "; charset=" + declared
	}
	_, name, certain := charset.DetermineEncoding(data, contentType)
	if !certain && name == "windows-1252" { // the encoding is a guess
		name = ""
	}
	z := html.NewTokenizer(bytes.NewReader([]byte(decode(data, name))))
	z.SetMaxBuf(maxToken)
	var w writer
	var skipped atom.Atom // the element whose content is not shown
	var title *strings.Builder
	for ctx.Err() == nil {
		kind := z.Next()
		if kind == html.ErrorToken {
			if err := z.Err(); !errors.Is(err, io.EOF) {
				t := w.result()
				t.Truncated = true
				return t, nil
			}
			return w.result(), nil
		}
		if kind == html.TextToken {
			if skipped != 0 {
				continue
			}
			text := spaced(string(z.Text()), w.Bytes())
			if title != nil {
				title.WriteString(text)
			}
			if w.add(text) != nil {
				break
			}
			continue
		}
		if kind != html.StartTagToken && kind != html.EndTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		tag, attributes := z.TagName()
		element, starts := atom.Lookup(tag), kind != html.EndTagToken
		switch {
		case skipped != 0:
			if element == skipped && !starts {
				skipped = 0
			}
		case kind == html.StartTagToken && hidden[element]:
			skipped = element
		case element == atom.Img && attributes:
			_ = w.add(alternative(z))
		case headings[element]:
			w.paragraph()
			if starts {
				w.place("")
				title = &strings.Builder{}
			} else if title != nil {
				w.places[len(w.places)-1].Name = heading(title.String())
				title = nil
			}
		case element == atom.Td || element == atom.Th:
			if !starts {
				_ = w.add(" \t")
			}
		case blocks[element]:
			w.line()
		}
	}
	return w.result(), ctx.Err()
}

// hidden are the elements whose content is not shown.
var hidden = map[atom.Atom]bool{atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true,
	atom.Iframe: true, atom.Object: true, atom.Select: true}

var headings = map[atom.Atom]bool{atom.H1: true, atom.H2: true, atom.H3: true, atom.H4: true, atom.H5: true,
	atom.H6: true}

// blocks are the elements that begin a line. Elements of XML, which have no atom, begin one as well.
var blocks = map[atom.Atom]bool{0: true, atom.P: true, atom.Div: true, atom.Br: true, atom.Li: true, atom.Ul: true,
	atom.Ol: true, atom.Tr: true, atom.Table: true, atom.Section: true, atom.Article: true, atom.Header: true,
	atom.Footer: true, atom.Main: true, atom.Nav: true, atom.Aside: true, atom.Blockquote: true, atom.Pre: true,
	atom.Dl: true, atom.Dt: true, atom.Dd: true, atom.Form: true, atom.Figure: true, atom.Figcaption: true,
	atom.Title: true, atom.Hr: true, atom.Head: true, atom.Body: true, atom.Html: true, atom.Details: true,
	atom.Summary: true, atom.Option: true, atom.Caption: true, atom.Address: true}

// spaced returns text with single spaces, and none at the beginning of a line.
func spaced(text string, before []byte) string {
	words := strings.Fields(text)
	atStart := len(before) == 0 || before[len(before)-1] == '\n' || before[len(before)-1] == ' '
	if len(words) == 0 {
		if text == "" || atStart {
			return ""
		}
		return " "
	}
	joined := strings.Join(words, " ")
	if strings.TrimLeft(text, " \t\r\n\f") != text && !atStart {
		joined = " " + joined
	}
	if strings.TrimRight(text, " \t\r\n\f") != text {
		joined += " "
	}
	return joined
}

// alternative returns the text in place of a picture.
func alternative(z *html.Tokenizer) string {
	for {
		key, value, more := z.TagAttr()
		if string(key) == "alt" && len(value) > 0 {
			return " " + string(value) + " "
		}
		if !more {
			return ""
		}
	}
}
