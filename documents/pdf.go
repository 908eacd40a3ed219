package documents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ledongthuc/pdf"

	"github.com/souvenir-ai/souvenir"
)

const (
	maxPages = 5000
	maxNodes = 2 * maxPages // of the tree of pages
	maxTree  = 32           // levels of it
	perPage  = 256 << 10    // bytes that the library may read for a page: it rereads objects
)

// readPDF reads the pages of a PDF file.
func readPDF(ctx context.Context, content io.ReaderAt, size int64) (t souvenir.DocumentText, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			t, err = souvenir.DocumentText{}, errors.New("it is not a PDF file, or a broken one")
		}
	}()
	bounded := &within{ReaderAt: content, ctx: ctx, left: 16*size + 64<<20}
	file, err := pdf.NewReader(bounded, size)
	if errors.Is(err, pdf.ErrInvalidPassword) {
		return souvenir.DocumentText{Reason: "it is encrypted"}, nil
	}
	if err != nil {
		return souvenir.DocumentText{}, errors.New("it is not a PDF file, or a broken one")
	}
	var w writer
	tree := pageTree{visit: maxNodes}
	tree.walk(file.Trailer().Key("Root").Key("Pages"), map[string]*pdf.Font{}, 0)
	unread := 0
	for i, page := range tree.pages {
		if ctx.Err() != nil {
			return souvenir.DocumentText{}, ctx.Err()
		}
		if w.full {
			break
		}
		bounded.left += perPage
		text, err := page.text()
		if err != nil {
			unread++
			continue
		}
		w.paragraph()
		w.place("page " + strconv.Itoa(i+1))
		_ = w.add(strings.TrimSpace(text))
	}
	t = w.result()
	t.Truncated = t.Truncated || tree.cut
	switch {
	case unread > 0:
		t.Reason = fmt.Sprintf("%d of %d pages could not be read", unread, len(tree.pages))
		t.Truncated = t.Truncated || strings.TrimSpace(t.Text) == ""
	case strings.TrimSpace(t.Text) == "":
		t.Reason = "its pages have no text; they may be scanned"
	}
	return t, nil
}

// pageTree collects the pages of a file. The library's own search for a page does not end where a tree has a loop.
type pageTree struct {
	pages []page
	visit int  // how many nodes may still be visited
	cut   bool // there are more
}

// page is a page with its own fonts, or those it inherits. The library itself would search for them for each page, and
// follow the parents of a page without end.
type page struct {
	pdf.Page
	fonts map[string]*pdf.Font
}

func (t *pageTree) walk(node pdf.Value, fonts map[string]*pdf.Font, depth int) {
	if t.visit--; t.visit <= 0 || depth > maxTree || len(t.pages) == maxPages {
		t.cut = true
		return
	}
	if resources := node.Key("Resources"); !resources.IsNull() {
		fonts = map[string]*pdf.Font{}
		for _, name := range resources.Key("Font").Keys() {
			fonts[name] = &pdf.Font{V: resources.Key("Font").Key(name)}
		}
	}
	kids := node.Key("Kids")
	if node.Key("Type").Name() == "Page" || kids.Len() == 0 {
		t.pages = append(t.pages, page{pdf.Page{V: node}, fonts})
		return
	}
	for i := range kids.Len() {
		if t.walk(kids.Index(i), fonts, depth+1); t.visit <= 0 {
			return
		}
	}
}

// text reads a page. The library panics on some broken pages.
func (p page) text() (text string, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("the page is broken: %v", broken)
		}
	}()
	return p.GetPlainText(p.fonts)
}

// within is a reader that fails when its context ends, or after a number of bytes. So it stops a library that never
// stops reading.
type within struct {
	io.ReaderAt
	ctx  context.Context
	left int64
}

func (r *within) ReadAt(p []byte, at int64) (int, error) {
	if r.left -= int64(len(p)); r.left < 0 {
		return 0, errors.New("it has a loop")
	}
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.ReaderAt.ReadAt(p, at)
}
