package files

import (
	"encoding/csv"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// preview is the part of a file's content that a page shows. Nothing in it can run: browsers decode images, and
// everything else is text.
type preview struct {
	How  string // image, text, markdown or table; empty: no preview
	Text string
	Rows [][]string
	Cut  bool // there is more
}

const (
	maxPreview        = 64 << 10 // bytes of a text
	maxPreviewEscaped = 80 << 10 // of it as HTML: a page has 150 KB with what it loads
	maxPreviewRows    = 50
	maxPreviewColumns = 20
	maxPreviewImage   = 32 << 20 // bytes; larger ones open on demand only
)

// shownImages are the image types that browsers decode, and that carry no scripts. The store has detected the types
// from the content.
var shownImages = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true,
	"image/avif": true}

// shownTexts are text types that do not begin with text/.
var shownTexts = map[string]bool{"application/json": true, "application/jsonl": true, "application/xml": true,
	"application/yaml": true, "application/toml": true,
	"application/x-ipynb+json": true, "message/rfc822": true, "image/svg+xml": true}

// preview reads as much of a file as the page shows.
func (s *Service) preview(r *http.Request, c request.Caller, f souvenir.File) (preview, error) {
	kind, _, _ := strings.Cut(f.MIMEType, ";")
	switch {
	case shownImages[kind]:
		if f.Size > maxPreviewImage {
			return preview{}, nil
		}
		return preview{How: "image"}, nil
	case f.Size == 0 || !strings.HasPrefix(kind, "text/") && !shownTexts[kind]:
		return preview{}, nil
	}
	content, err := c.Store.OpenFile(r.Context(), f.ID)
	if err != nil {
		return preview{}, err
	}
	defer content.Close()
	read := make([]byte, maxPreview+1)
	n, err := io.ReadFull(content, read)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return preview{}, err
	}
	p := preview{How: "text", Cut: n > maxPreview}
	p.Text = string(read[:min(n, maxPreview)])
	if p.Cut {
		p.Text = wholeRunes(p.Text)
	}
	if !utf8.ValidString(p.Text) || strings.ContainsRune(p.Text, 0) {
		return preview{}, nil
	}
	p.fit()
	switch kind {
	case "text/markdown":
		p.How = "markdown"
	case "text/csv":
		if rows := cellsOf(p.Text); len(rows) > 1 {
			p.How, p.Rows, p.Cut = "table", rows, p.Cut || len(rows) == maxPreviewRows
		}
	}
	return p, nil
}

// wholeRunes removes an incomplete character from the end of a text.
func wholeRunes(text string) string {
	for range utf8.UTFMax - 1 {
		if last, size := utf8.DecodeLastRuneInString(text); last != utf8.RuneError || size != 1 {
			break
		}
		text = text[:len(text)-1]
	}
	return text
}

// fit shortens the text so that the page stays small even when HTML escapes many of its characters.
func (p *preview) fit() {
	left := maxPreviewEscaped
	for i, char := range p.Text {
		cost := utf8.RuneLen(char)
		switch char {
		case '<', '>', '&', '"', '\'', '+':
			cost = len("&#34;")
		}
		if left -= cost; left < 0 {
			p.Text, p.Cut = p.Text[:i], true
			return
		}
	}
}

// cellsOf returns the first rows of a table, which may differ in length; nil: it cannot be read.
func cellsOf(text string) [][]string {
	reader := csv.NewReader(strings.NewReader(text))
	reader.FieldsPerRecord, reader.LazyQuotes = -1, true
	var rows [][]string
	for len(rows) < maxPreviewRows {
		row, err := reader.Read()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return rows
			}
			return nil
		}
		rows = append(rows, row[:min(len(row), maxPreviewColumns)])
	}
	return rows
}
