package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Span is a piece of an excerpt.
type Span struct {
	Text   string
	Strong bool // of a heading, or emphasized strongly
	Code   bool
}

// Excerpt returns a text in one line, without its Markdown marks, as lists show it. A text that would cost too much to
// parse is returned as stored, in one line.
func (r *Renderer) Excerpt(source string) []Span {
	asStored := []Span{{Text: strings.Join(strings.Fields(source), " ")}}
	if len(source) > MaxInput || marksTooDeep(source) || !r.enter() {
		return asStored
	}
	defer func() { <-r.slots }()
	bytes := []byte(source)
	m := newMeter(len(bytes))
	context := parser.NewContext()
	context.Set(meterKey, m)
	document := r.converter.Parser().Parse(text.NewReader(bytes), parser.WithContext(context))
	if m.over {
		return asStored
	}
	e := excerpt{source: bytes}
	_ = ast.Walk(document, e.visit) // visit returns no error
	return e.spans
}

// excerpt collects the spans of a document.
type excerpt struct {
	source []byte
	spans  []Span
	strong int // elements around the current one that make it strong
}

func (e *excerpt) visit(node ast.Node, entering bool) (ast.WalkStatus, error) {
	switch node := node.(type) {
	case *ast.Heading, *extensionast.TableHeader:
		e.deepen(entering)
	case *ast.Emphasis:
		if node.Level == 2 {
			e.deepen(entering)
		}
	case *ast.Text:
		if entering {
			value := string(node.Value(e.source))
			if node.SoftLineBreak() || node.HardLineBreak() {
				value += " "
			}
			e.add(value, false)
		}
		return ast.WalkContinue, nil
	case *ast.String:
		if entering {
			e.add(string(node.Value), false)
		}
		return ast.WalkContinue, nil
	case *ast.AutoLink:
		if entering {
			e.add(string(node.Label(e.source)), false)
		}
	case *ast.RawHTML:
		if entering {
			e.add(string(node.Segments.Value(e.source)), false)
		}
	case *ast.CodeSpan:
		if entering {
			for child := node.FirstChild(); child != nil; child = child.NextSibling() {
				if part, ok := child.(*ast.Text); ok {
					e.add(string(part.Value(e.source)), true)
				}
			}
		}
		return ast.WalkSkipChildren, nil
	case *extensionast.TaskCheckBox:
		if entering {
			e.add(map[bool]string{true: "☑ ", false: "☐ "}[node.IsChecked], false)
		}
	case *ast.CodeBlock, *ast.FencedCodeBlock, *ast.HTMLBlock:
		if entering {
			_, html := node.(*ast.HTMLBlock)
			e.add(string(node.Lines().Value(e.source)), !html)
		}
	}
	if node.Type() == ast.TypeBlock || node.Kind() == extensionast.KindTableCell {
		e.add(" ", false)
	}
	return ast.WalkContinue, nil
}

func (e *excerpt) deepen(entering bool) {
	if entering {
		e.strong++
	} else {
		e.strong--
	}
}

// add appends a piece, with one space for each run of white space, and none at the beginning.
func (e *excerpt) add(piece string, code bool) {
	var line strings.Builder
	spaced := len(e.spans) == 0 || strings.HasSuffix(e.spans[len(e.spans)-1].Text, " ")
	for _, r := range piece {
		if space := r == ' ' || r == '\n' || r == '\t' || r == '\r'; !space {
			line.WriteRune(r)
			spaced = false
		} else if !spaced {
			line.WriteByte(' ')
			spaced = true
		}
	}
	if line.Len() == 0 {
		return
	}
	s := Span{Text: line.String(), Strong: e.strong > 0, Code: code}
	if last := len(e.spans) - 1; last >= 0 && e.spans[last].Strong == s.Strong && e.spans[last].Code == s.Code {
		e.spans[last].Text += s.Text
		return
	}
	e.spans = append(e.spans, s)
}
