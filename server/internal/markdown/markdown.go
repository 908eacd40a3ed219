// Package markdown renders users' stored Markdown as HTML for the dashboard, within bounds: no input, such as wide
// tables or deep nesting, costs more memory or time than a fixed multiple of the text's length.
package markdown

import (
	"errors"
	"html/template"
	"strings"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	// MaxInput is the maximum length, in bytes, of a rendered text.
	MaxInput = 64 << 10

	// maxDepth is how deep elements may nest. Browsers stop at 512.
	maxDepth = 200

	// maxMarks is how many marks of block quotes and lists may begin a line. The parser examines each again for
	// every mark that follows.
	maxMarks = 100
)

// outputOf returns the maximum length of the HTML, in bytes, for a text of the given length.
func outputOf(length int) int { return 4<<10 + 24*length }

// Renderer renders Markdown. It is safe for concurrent use.
type Renderer struct {
	converter goldmark.Markdown
	slots     chan struct{} // one for each text being rendered
	wait      time.Duration
}

// New returns a renderer of at most atOnce texts at a time. A text that waits for longer than wait is shown as
// plain text.
func New(atOnce int, wait time.Duration) *Renderer {
	p := parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(inlineParsers()...),
		parser.WithParagraphTransformers(paragraphTransformers()...),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0), util.Prioritized(tamer{}, 1000)),
	)
	r := renderer.NewRenderer(renderer.WithNodeRenderers(
		util.Prioritized(plainly{}, 100),
		util.Prioritized(extension.NewTableHTMLRenderer(
			extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), 500),
		util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
		util.Prioritized(html.NewRenderer(html.WithHardWraps()), 1000),
	))
	return &Renderer{
		converter: goldmark.New(goldmark.WithParser(p), goldmark.WithRenderer(r)),
		slots:     make(chan struct{}, max(atOnce, 1)), wait: wait,
	}
}

// HTML renders a text (CommonMark with GitHub's tables, tasks, strikethrough and bare addresses). HTML in it stays
// text, addresses that would run code are left out, and images become links, since pages load nothing from other
// sites. A text that would cost too much is shown as plain text, with a note.
func (r *Renderer) HTML(source string) template.HTML {
	if len(source) > MaxInput || marksTooDeep(source) {
		return plain(source, tooComplex)
	}
	if !r.enter() {
		return plain(source, tooBusy)
	}
	defer func() { <-r.slots }()
	rendered, ok := r.render([]byte(source))
	if !ok {
		return plain(source, tooComplex)
	}
	return template.HTML(rendered)
}

// render renders a text, unless that costs more than its length allows.
func (r *Renderer) render(source []byte) (rendered string, ok bool) {
	m := newMeter(len(source))
	context := parser.NewContext()
	context.Set(meterKey, m)
	document := r.converter.Parser().Parse(text.NewReader(source), parser.WithContext(context))
	if m.over {
		return "", false
	}
	out := &bounded{left: outputOf(len(source))}
	if err := r.converter.Renderer().Render(out, source, document); err != nil {
		return "", false
	}
	return out.String(), true
}

// enter waits for a turn, and reports whether it got one in time.
func (r *Renderer) enter() bool {
	select {
	case r.slots <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(r.wait)
	defer timer.Stop()
	select {
	case r.slots <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

const (
	tooComplex = "This text is too complex to format, so it appears as stored."
	tooBusy    = "The server is too busy to format this text now, so it appears as stored."
)

// plain returns a text unrendered, with a note.
func plain(source, note string) template.HTML {
	return template.HTML(`<p class="note">` + note + "</p>\n<pre><code>" + template.HTMLEscapeString(source) +
		"</code></pre>\n")
}

// bounded is a buffer with a maximum length.
type bounded struct {
	strings.Builder
	left int
}

var errTooLong = errors.New("the HTML is too long")

// Write appends a part of the HTML.
func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errTooLong
	}
	return b.Builder.Write(p)
}

// marksTooDeep reports whether a line begins with more marks of quotes and lists than maxMarks.
func marksTooDeep(source string) bool {
	for line := range strings.Lines(source) {
		marks := 0
		for i := 0; i < len(line) && strings.IndexByte("> \t-+*.)0123456789", line[i]) >= 0; i++ {
			if strings.IndexByte(">-+*.)", line[i]) >= 0 {
				marks++
			}
			if i > 0 && line[i] == line[i-1] && line[i] != ' ' && line[i] != '>' {
				break // such as a line of dashes
			}
		}
		if marks > maxMarks {
			return true
		}
	}
	return false
}

// depthOf returns the nesting depth of a document.
func depthOf(document ast.Node) int {
	deepest, depth := 0, 0
	for node := document; node != nil; {
		deepest = max(deepest, depth)
		if child := node.FirstChild(); child != nil {
			node, depth = child, depth+1
			continue
		}
		for node != document && node.NextSibling() == nil {
			node, depth = node.Parent(), depth-1
		}
		if node == document {
			break
		}
		node = node.NextSibling()
	}
	return deepest
}
