// Package documents extracts the text of files, so that searches find them: Markdown, text, source code, HTML, CSV,
// JSON, e-mail, PDF and DOCX. [New] makes a reader for souvenir.Options.Documents.
//
// Files are untrusted. Each is read up to a size, in one pass, without following any reference in it. The PDF library
// cannot be interrupted, and a file can make it allocate so much memory that the program ends. So it runs in a process
// of its own ([Options].Command), with bounded time and memory.
package documents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"path"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

const (
	maxBytes   = 8 << 20  // bytes read of a text, an HTML page, a table, JSON or a mail
	maxPacked  = 64 << 20 // bytes of a PDF or DOCX file
	maxText    = 1 << 20  // bytes of text taken from a file, as in the store
	maxPlaces  = 4096
	maxHeading = 80 // bytes of a heading in the name of a place
)

// Options change what [New] returns. Nil means the zero value.
type Options struct {
	// Command is a program and its arguments that calls [Serve] with its standard input and output. It reads PDF files,
	// each in a process of its own, without an environment. If empty, PDF files are not read, unless TrustPDF is set.
	Command []string

	// TrustPDF reads PDF files in this process if there is no Command. A malicious file can end the program or keep a
	// processor busy, so set it only for files whose authors you trust.
	TrustPDF bool
}

// New returns a reader of documents.
func New(options *Options) souvenir.DocumentReader {
	r := &reader{}
	if options != nil {
		r.command, r.trustPDF = slices.Clone(options.Command), options.TrustPDF
	}
	return r
}

type reader struct {
	command  []string
	trustPDF bool
}

// ReadDocument returns the text of a document.
func (r *reader) ReadDocument(ctx context.Context, d souvenir.Document) (souvenir.DocumentText, error) {
	kind, parameters, _ := mime.ParseMediaType(d.MIMEType) // an invalid type counts as none
	switch format := formatOf(kind, d.Filename); format {
	case "":
		if kind == "" {
			return souvenir.DocumentText{Reason: "files of an unknown type are not read"}, nil
		}
		return souvenir.DocumentText{Reason: "files of type " + kind + " are not read"}, nil
	case "pdf", "docx":
		if d.Size > maxPacked {
			return souvenir.DocumentText{Truncated: true, Reason: fmt.Sprintf(
				"it has %d bytes; of this type at most %d are read", d.Size, maxPacked)}, nil
		}
		if format == "docx" {
			return readDOCX(ctx, d.Content, d.Size)
		}
		switch {
		case len(r.command) > 0:
			return r.apart(ctx, d)
		case r.trustPDF:
			return readPDF(ctx, d.Content, d.Size)
		}
		return souvenir.DocumentText{Reason: "PDF files are not read here: the program has no process for it"}, nil
	default:
		data, err := io.ReadAll(io.NewSectionReader(d.Content, 0, min(d.Size, maxBytes)))
		if err != nil {
			return souvenir.DocumentText{}, err
		}
		t, err := readText(ctx, format, data, parameters["charset"])
		t.Truncated = t.Truncated || d.Size > maxBytes
		return t, err
	}
}

// formats are the formats of media types that are not text, or are read as more than plain text.
var formats = map[string]string{
	"text/html": "html", "application/xhtml+xml": "html", "image/svg+xml": "html", "application/xml": "html",
	"text/xml": "html", "text/markdown": "markdown", "text/csv": "csv", "text/tab-separated-values": "tsv",
	"application/json": "json", "application/jsonl": "json", "application/x-ndjson": "json",
	"application/x-ipynb+json": "json", "application/geo+json": "json", "application/ld+json": "json",
	"message/rfc822": "mail", "application/pdf": "pdf",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
	"application/yaml": "text", "application/toml": "text", "application/javascript": "text",
	"application/x-sh": "text", "application/sql": "text",
}

// formatOf returns the format that a file is read as, "" if it is not read.
func formatOf(kind, filename string) string {
	format := formats[kind]
	if format == "" && strings.HasPrefix(kind, "text/") {
		format = "text"
	}
	if format == "text" || kind == "" || kind == "application/octet-stream" { // the name may be more specific
		switch strings.ToLower(path.Ext(filename)) {
		case ".md", ".markdown":
			return "markdown"
		case ".html", ".htm":
			return "html"
		case ".csv":
			return "csv"
		case ".tsv":
			return "tsv"
		case ".json", ".jsonl", ".ndjson":
			return "json"
		case ".eml":
			return "mail"
		case ".pdf":
			return "pdf"
		case ".docx":
			return "docx"
		}
	}
	return format
}

// readText reads a format that is text.
func readText(ctx context.Context, format string, data []byte, charset string) (souvenir.DocumentText, error) {
	switch format {
	case "html":
		return readHTML(ctx, data, charset)
	case "mail":
		return readMail(ctx, data)
	}
	text := decode(data, charset)
	if isBinary(text) {
		return souvenir.DocumentText{Reason: "it is not text"}, nil
	}
	switch format {
	case "csv":
		return readTable(ctx, text, ',')
	case "tsv":
		return readTable(ctx, text, '\t')
	case "json":
		return readJSON(ctx, text)
	}
	return readLines(text, format == "markdown"), nil
}

// writer collects a text and its places.
type writer struct {
	bytes.Buffer
	places []souvenir.DocumentPlace
	full   bool // maxText is reached
}

var errFull = errors.New("the text is long enough")

// add writes text, or returns errFull.
func (w *writer) add(text string) error {
	if w.Len()+len(text) > maxText {
		for i := maxText - w.Len(); i >= 0; i-- { // at the start of a character
			if i == 0 || text[i]&0xc0 != 0x80 {
				w.WriteString(text[:i])
				break
			}
		}
		w.full = true
		return errFull
	}
	w.WriteString(text)
	return nil
}

// line ends the line, unless the text is at the beginning of one.
func (w *writer) line() {
	if b := w.Bytes(); len(b) > 0 && b[len(b)-1] != '\n' {
		w.WriteByte('\n')
	}
}

// paragraph leaves an empty line.
func (w *writer) paragraph() {
	w.line()
	if b := w.Bytes(); len(b) > 1 && b[len(b)-2] != '\n' {
		w.WriteByte('\n')
	}
}

// place begins a place.
func (w *writer) place(name string) {
	if n := len(w.places); n > 0 && w.places[n-1].Start == w.Len() {
		w.places[n-1].Name = name
	} else {
		w.places = append(w.places, souvenir.DocumentPlace{Start: w.Len(), Name: name})
	}
}

// result returns the collected text.
func (w *writer) result() souvenir.DocumentText {
	return souvenir.DocumentText{Text: w.String(), Places: thin(w.places), Truncated: w.full}
}

// thin returns every n-th place, to bound their number.
func thin(places []souvenir.DocumentPlace) []souvenir.DocumentPlace {
	if len(places) <= maxPlaces {
		return places
	}
	var some []souvenir.DocumentPlace
	for i := 0; i < len(places); i += (len(places) + maxPlaces - 1) / maxPlaces {
		some = append(some, places[i])
	}
	return some
}

// heading shortens a heading for the name of a place.
func heading(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxHeading {
		return text
	}
	end := maxHeading
	for end > 0 && text[end]&0xc0 == 0x80 {
		end--
	}
	return text[:end] + "…"
}
