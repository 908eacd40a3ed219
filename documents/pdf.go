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

const maxPages = 5000

// readPDF reads the pages of a PDF file.
func readPDF(ctx context.Context, content io.ReaderAt, size int64) (t souvenir.DocumentText, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			t, err = souvenir.DocumentText{}, errors.New("it is not a PDF file, or a broken one")
		}
	}()
	file, err := pdf.NewReader(&within{ReaderAt: content, ctx: ctx, left: 16*size + 64<<20}, size)
	if errors.Is(err, pdf.ErrInvalidPassword) {
		return souvenir.DocumentText{Reason: "it is encrypted"}, nil
	}
	if err != nil {
		return souvenir.DocumentText{}, errors.New("it is not a PDF file, or a broken one")
	}
	var w writer
	tree := pageTree{visit: maxPages}
	tree.walk(file.Trailer().Key("Root").Key("Pages"), 0)
	unread := 0
	for i, page := range tree.pages {
		if ctx.Err() != nil {
			return souvenir.DocumentText{}, ctx.Err()
		}
		if w.full {
			break
		}
		text, err := pageText(page)
		if err != nil {
			unread++
			continue
		}
		w.paragraph()
		w.place("page " + strconv.Itoa(i+1))
		_ = w.add(strings.TrimSpace(text))
	}
	t = w.result()
	t.Truncated = t.Truncated || tree.visit <= 0
	switch {
	case unread > 0:
		t.Reason = fmt.Sprintf("%d of %d pages could not be read", unread, len(tree.pages))
	case strings.TrimSpace(t.Text) == "":
		t.Reason = "its pages have no text; they may be scanned"
	}
	return t, nil
}

const maxTree = 32 // levels of the tree of pages

// pageTree collects the pages of a file. The library's own search for a page does not end where a tree has a loop.
type pageTree struct {
	pages []pdf.Page
	visit int // how many nodes may still be visited
}

func (t *pageTree) walk(node pdf.Value, depth int) {
	if t.visit--; t.visit <= 0 || depth > maxTree {
		return
	}
	kids := node.Key("Kids")
	if node.Key("Type").Name() == "Page" || kids.Len() == 0 {
		t.pages = append(t.pages, pdf.Page{V: node})
		return
	}
	for i := range kids.Len() {
		if t.walk(kids.Index(i), depth+1); t.visit <= 0 {
			return
		}
	}
}

// pageText reads a page. The library panics on some broken pages, and follows the parents of a page without end.
func pageText(page pdf.Page) (text string, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("the page is broken: %v", broken)
		}
	}()
	depth := 0
	for parent := page.V; !parent.IsNull(); parent = parent.Key("Parent") {
		if depth++; depth > maxTree {
			return "", errors.New("the page is its own parent")
		}
	}
	return page.GetPlainText(nil)
}

// within is a reader that ends with a context, and after a number of bytes; and with it what reads on and on.
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
