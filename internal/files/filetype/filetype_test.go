package filetype

import (
	"archive/tar"
	"bytes"
	"mime"
	"strings"
	"testing"
)

// The beginnings of files.
const (
	png   = "\x89PNG\r\n\x1a\n\x00\x00"
	jpeg  = "\xff\xd8\xff\xe0\x00\x10JFIF"
	tiff  = "II*\x00\x08\x00\x00\x00"
	zip   = "PK\x03\x04\x14\x00"
	mp4   = "\x00\x00\x00\x18ftypisom\x00"
	elf   = "\x7fELF\x02\x01\x01\x00"
	page  = " \n<!DOCTYPE html>\n<script>"
	svg   = `<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>`
	doc   = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00"
	latin = "caf\xe9;1\n"
)

type typedFile struct{ declared, name, content, want string }

// typedFiles are files with their types, "" if the content contradicts the declared type.
var typedFiles = []typedFile{
	// The declared type counts unless the content contradicts it.
	{"text/plain", "a.txt", "hello", "text/plain"},
	{"text/html", "a", "hello", "text/html"},
	{"application/json", "a", page, "application/json"},
	{"image/png", "a", png, "image/png"},
	{"image/png", "a", "whatever", "image/png"},
	{"image/png", "a", "", "image/png"},
	{"image/png", "a", jpeg, "image/jpeg"},
	{"image/svg+xml", "a", png, "image/png"},
	{"image/x-nikon-nef", "a", tiff, "image/x-nikon-nef"},
	{"image/svg+xml", "a", svg, "image/svg+xml"},
	{"image/svg+xml", "a", "<!-- made by hand --><svg/>", "image/svg+xml"},
	{"image/svg+xml", "a", `<?xml version="1.0"?><other/>`, "image/svg+xml"},
	{"audio/mp4", "a", mp4, "audio/mp4"},
	{"application/pdf", "a", "%PDF-1.7", "application/pdf"},
	{"image/png", "a", page, ""},
	{"image/png", "a", "<html><script>\x00\x00", ""},
	{"image/png", "a", "<!--\x00", ""},
	{"", "a", "<ScRiPt >\x00", "text/html"},
	{"image/png", "a", svg, ""},
	{"image/png", "a", elf, ""},
	{"image/gif", "a", mp4, ""},
	{"audio/mpeg", "a", "#!/bin/sh\n", ""},
	{"video/mp4", "a", png, ""},
	{"application/pdf", "a", page, ""},
	{"application/pdf", "a", zip, ""},

	// Without a declared type, the content decides, then the name.
	{"", "a.txt", png, "image/png"},
	{"application/octet-stream", "a", jpeg, "image/jpeg"},
	{"", "a", "hello", plainText},
	{"", "a.md", page, "text/markdown; charset=utf-8"},
	{"", "a.TXT", "hello", plainText},
	{"", "a", page, "text/html"},
	{"", "a.html", "hello", "text/html"},
	{"", "a", "\xef\xbb\xbf<a href=x>", "text/html"},
	{"", "a", "<article>", plainText},
	{"", "a", svg, "image/svg+xml"},
	{"", "a.svg", "<svg>", "image/svg+xml"},
	{"", "a", `<?xml version="1.0"?><html/>`, "text/html"},
	{"", "a", `<?xml version="1.0"?><feed/>`, "application/xml"},
	{"", "a.png", "hello", plainText},
	{"", "a.png", "\x00\x01\x02", anyBytes},
	{"", "a.docx", zip, "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
	{"", "a.txt", zip, "application/zip"},
	{"", "a.xls", doc, "application/vnd.ms-excel"},
	{"", "a", doc, "application/x-ole-storage"},
	{"", "a.m4a", mp4, "audio/mp4"},
	{"", "a", mp4, "video/mp4"},
	{"", "a.csv", latin, "text/csv"},
	{"", "a.txt", latin, "text/plain"},
	{"", "a.txt", "\x00\x01", anyBytes},
	{"", "a", latin, anyBytes},
	{"", "a.aac", "\x00\x01", anyBytes},
	{"", "a.ipynb", "{}", "application/x-ipynb+json"},
	{"", "a.txt", "", plainText},
	{"", "a", "", anyBytes},
	{"", "a", "BMW is a car, and so on and on", plainText},
	{"", "a", "ID3 is a tag", plainText},
	{"", "a", strings.Repeat("x", sniffed-1) + "ä", plainText},
	{"", "a", strings.Repeat("x", 300) + "ustar", plainText},
	{"", "a", strings.Repeat("\x00", 257) + "ustar", anyBytes},
	{"image/apng", "a", png, "image/apng"},
	{"image/x-icon", "a", "\x00\x00\x01\x00\x01\x00", "image/x-icon"},
	{"", "a", "\x00\x00\x01\x00\x01\x00", "image/vnd.microsoft.icon"},
	{"", "a", "a,b\n1,2\n", plainText},
	{"", "a", `{"a": 1}`, plainText},
	{"image/png", "a", `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">`, ""},
	{"image/png", "a", "<SVG onload=x>", ""},
	{"", "", "", anyBytes},
}

func TestTypesOfFiles(t *testing.T) {
	tarFile := archive(t)
	for _, c := range append([]typedFile{{"", "a", tarFile, "application/x-tar"},
		{"", "a.docx", tarFile, "application/x-tar"}}, typedFiles...) {
		got, contradiction := Of(c.declared, c.name, []byte(c.content))
		if got != c.want || (contradiction == "") != (c.want != "") {
			t.Errorf("%q, %s, %.20q: got %q, %q; want %q", c.declared, c.name, c.content, got, contradiction, c.want)
		}
	}
}

// archive returns a tar archive with one file.
func archive(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&tar.Header{Name: "a", Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestEveryExtensionIsOfOneType(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range extensionTypes {
		if seen[e.extension] {
			t.Errorf("%s is in the table twice", e.extension)
		}
		seen[e.extension] = true
		if canonical := canonical(e.mimeType); canonical != e.mimeType {
			t.Errorf("the type of %s is %s, in canonical form %s, want the same", e.extension, e.mimeType, canonical)
		}
		if back := Extension(e.mimeType); ofName("a"+back) != e.mimeType {
			t.Errorf("%s: the extension of its type is that of %s, want %s", e.extension, back, e.mimeType)
		}
	}
}

func canonical(mimeType string) string {
	kind, parameters, err := mime.ParseMediaType(mimeType)
	if err != nil {
		return ""
	}
	return mime.FormatMediaType(kind, parameters)
}

// FuzzOf checks that each type is well-formed, and that an HTML page never counts as an image.
func FuzzOf(f *testing.F) {
	f.Add("image/png", "a.png", []byte("<html>"))
	f.Add("", "a.docx", []byte("PK\x03\x04"))
	f.Add("text/plain; charset=\"a b\"", "", []byte{0, 1, 2})
	f.Fuzz(func(t *testing.T, declared, name string, head []byte) {
		declared = canonical(declared)
		got, contradiction := Of(declared, name, head)
		if got == "" {
			got = contradiction
		}
		if canonical(got) != got || got == "" {
			t.Errorf("the type is %q, in canonical form %q, want the same", got, canonical(got))
		}
		if contradiction == "" && strings.HasPrefix(got, "image/") && got != svgType && ofBytes(head) == htmlType {
			t.Errorf("a page is kept as %s, want no picture", got)
		}
	})
}
