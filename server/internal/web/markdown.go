package web

import (
	"html/template"
	"runtime"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir/server/internal/markdown"
)

// markdownWait is how long a text waits for its turn to be formatted.
const markdownWait = 2 * time.Second

// renderer renders all Markdown of all pages, as many texts at once as there are processors.
var renderer = sync.OnceValue(func() *markdown.Renderer {
	return markdown.New(runtime.GOMAXPROCS(0), markdownWait)
})

// Markdown shows a stored text as its marks mean it: the only way to render Markdown here, for it bounds what that
// costs.
func Markdown(source string) template.HTML { return renderer().HTML(source) }
