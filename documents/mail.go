package documents

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/souvenir-ai/souvenir"
)

const (
	maxParts   = 200 // of a mail
	maxNesting = 8   // of nested parts
)

// readMail reads the headers that people read, the text of a mail, and the names of attachments.
func readMail(ctx context.Context, data []byte) (souvenir.DocumentText, error) {
	m, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		return readLines(decode(data, ""), false), nil //nolint:nilerr // it is a text, but no mail
	}
	r := &mailReader{ctx: ctx}
	r.place("headers")
	for _, name := range []string{"Subject", "From", "To", "Cc", "Date"} {
		if value := words(m.Header.Get(name)); value != "" && r.add(name+": "+value+"\n") != nil {
			return r.result(), nil //nolint:nilerr // there is enough text
		}
	}
	r.paragraph()
	r.place("body")
	err = r.part(textproto.MIMEHeader(m.Header), m.Body, 0)
	if errors.Is(err, errFull) {
		err = nil
	}
	return r.result(), err
}

type mailReader struct {
	writer
	ctx   context.Context
	parts int
}

// words decodes the encoded words of a header (RFC 2047).
func words(value string) string {
	d := mime.WordDecoder{CharsetReader: func(charset string, input io.Reader) (io.Reader, error) {
		e, err := htmlindex.Get(charset)
		if err != nil {
			return nil, err
		}
		return e.NewDecoder().Reader(input), nil
	}}
	decoded, err := d.DecodeHeader(value)
	if err != nil {
		decoded = value
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(decoded, "\ufffd")), " ")
}

// part reads a part, and the parts in it.
func (r *mailReader) part(header textproto.MIMEHeader, body io.Reader, depth int) error {
	if r.parts++; r.parts > maxParts || r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	kind, parameters, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		kind = "text/plain"
	}
	if strings.HasPrefix(kind, "multipart/") {
		if parameters["boundary"] == "" || depth >= maxNesting {
			return nil
		}
		return r.multipart(kind, multipart.NewReader(body, parameters["boundary"]), depth)
	}
	disposition, about, _ := mime.ParseMediaType(header.Get("Content-Disposition"))
	if name := words(firstOf(about["filename"], parameters["name"])); disposition == "attachment" || name != "" {
		r.line()
		return r.add("Attachment: " + firstOf(name, kind) + "\n")
	}
	if kind != "text/plain" && kind != "text/html" {
		return nil
	}
	switch strings.ToLower(strings.TrimSpace(header.Get("Content-Transfer-Encoding"))) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	data, _ := io.ReadAll(io.LimitReader(body, maxBytes)) // a broken part is read as far as possible
	if r.parts > 1 {
		r.paragraph()
		r.place("part " + strconv.Itoa(r.parts-1))
	}
	if kind == "text/plain" {
		return r.add(decode(data, parameters["charset"]))
	}
	page, err := readHTML(r.ctx, data, parameters["charset"])
	if err != nil {
		return err
	}
	return r.add(page.Text)
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// multipart reads parts. Of alternatives it reads the first text: the plain one, by convention.
func (r *mailReader) multipart(kind string, parts *multipart.Reader, depth int) error {
	for {
		p, err := parts.NextRawPart()
		if err != nil {
			return nil //nolint:nilerr // the end, or the rest is broken
		}
		before := r.Len()
		if err := r.part(p.Header, p, depth+1); err != nil {
			return err
		}
		if kind == "multipart/alternative" && len(bytes.TrimSpace(r.Bytes()[before:])) > 0 {
			return nil
		}
	}
}
