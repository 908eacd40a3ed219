package documents

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

const (
	maxEntries  = 10_000   // of a DOCX file
	maxUnpacked = 64 << 20 // bytes of its XML
	maxDepth    = 256      // of nested elements
)

var errBroken = errors.New("it is not a DOCX file, or a broken one")

// readDOCX reads the paragraphs of an Office Open XML document (ECMA-376), as Word and other programs write it.
func readDOCX(ctx context.Context, content io.ReaderAt, size int64) (souvenir.DocumentText, error) {
	if n, err := entries(content, size); err != nil || n > maxEntries {
		return souvenir.DocumentText{}, errors.Join(err, errBroken)
	}
	archive, err := zip.NewReader(content, size)
	if err != nil {
		return souvenir.DocumentText{}, errBroken
	}
	var w writer
	found := false
	for _, name := range []string{"word/document.xml", "word/footnotes.xml", "word/endnotes.xml", "word/comments.xml"} {
		for _, f := range archive.File {
			if f.Name != name {
				continue
			}
			found = true
			if err := w.paragraphs(ctx, f); err != nil && !errors.Is(err, errFull) {
				return souvenir.DocumentText{}, err
			}
			break
		}
	}
	if !found {
		return souvenir.DocumentText{}, errBroken
	}
	return w.result(), ctx.Err()
}

// entries returns the number of entries that the archive declares. It is checked before they are read, since each takes
// memory.
func entries(content io.ReaderAt, size int64) (int, error) {
	tail := make([]byte, min(size, 64<<10+22))
	if _, err := content.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	at := strings.LastIndex(string(tail), "PK\x05\x06")
	if at < 0 || at+22 > len(tail) {
		return 0, errBroken
	}
	return int(binary.LittleEndian.Uint16(tail[at+10:])), nil
}

// paragraphs reads the paragraphs of one XML file.
func (w *writer) paragraphs(ctx context.Context, f *zip.File) error {
	unpacked, err := f.Open()
	if err != nil {
		return errBroken
	}
	defer unpacked.Close()
	limited := &io.LimitedReader{R: unpacked, N: maxUnpacked}
	d := xml.NewDecoder(limited)
	var title *strings.Builder // of a heading
	inText, depth := false, 0
	for ctx.Err() == nil {
		token, err := d.Token()
		if errors.Is(err, io.EOF) || err != nil && limited.N <= 0 {
			w.full = w.full || limited.N <= 0
			return nil
		}
		if err != nil {
			return errBroken
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth {
				return errBroken
			}
			switch t.Name.Local {
			case "p":
				title = nil
			case "pStyle":
				if isHeading(t) {
					title = &strings.Builder{}
					w.place("")
				}
			case "t":
				inText = true
			case "tab":
				_ = w.add("\t")
			case "br", "cr":
				_ = w.add("\n")
			}
		case xml.EndElement:
			depth--
			switch t.Name.Local {
			case "t":
				inText = false
			case "p":
				if title != nil {
					w.places[len(w.places)-1].Name = heading(title.String())
				}
				title = nil
				w.paragraph()
			}
		case xml.CharData:
			if !inText {
				continue
			}
			if title != nil {
				title.Write(t[:min(len(t), maxHeading)])
			}
			if err := w.add(string(t)); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// isHeading reports whether the style of a paragraph is that of a heading.
func isHeading(t xml.StartElement) bool {
	for _, a := range t.Attr {
		style := strings.ToLower(a.Value)
		if a.Name.Local == "val" &&
			(strings.HasPrefix(style, "heading") || style == "title" || style >= "1" && style <= "6") {
			return true
		}
	}
	return false
}
