package web

import (
	"html/template"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir/server/internal/markdown"
)

// markdownWait is how long a text waits for its turn to be rendered.
const markdownWait = 2 * time.Second

// renderer renders the Markdown of all pages, as many texts at once as there are processors.
var renderer = sync.OnceValue(func() *markdown.Renderer {
	return markdown.New(runtime.GOMAXPROCS(0), markdownWait)
})

// Markdown renders a stored text: the only way to render Markdown here, since it bounds the cost.
func Markdown(source string) template.HTML { return renderer().HTML(source) }

// Excerpt returns the beginning of a stored text for a list: in one line, without the marks of its Markdown.
func Excerpt(source string) []markdown.Span { return renderer().Excerpt(source) }

// Plain returns the beginning of a stored text, which it bounds, in one line without the marks of its Markdown.
func Plain(source string) string {
	var line strings.Builder
	for _, span := range Excerpt(source) {
		line.WriteString(span.Text)
	}
	return line.String()
}
