package souvenir

import (
	"errors"
	"strings"
	"testing"
)

func TestFileType(t *testing.T) {
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
	for _, c := range []struct{ declared, name, content, want string }{
		// What is declared counts where the content does not speak against it.
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
		{"image/png", "a", svg, ""},
		{"image/png", "a", elf, ""},
		{"image/gif", "a", mp4, ""},
		{"audio/mpeg", "a", "#!/bin/sh\n", ""},
		{"video/mp4", "a", png, ""},
		{"application/pdf", "a", page, ""},
		{"application/pdf", "a", zip, ""},

		// Without a declared type the content decides, then the name.
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
		{"", "a", strings.Repeat("\x00", 257) + "ustar", "application/x-tar"},
	} {
		got, err := fileType(c.declared, c.name, []byte(c.content))
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q, %s, %.20q: %s, %v; want %s", c.declared, c.name, c.content, got, err, c.want)
		}
		if err != nil && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.declared)) {
			t.Errorf("%q, %s, %.20q: %v", c.declared, c.name, c.content, err)
		}
	}
}

func TestDeclaredTypesAreBroughtToOneForm(t *testing.T) {
	for declared, want := range map[string]string{
		"":                           "",
		"  ":                         "",
		"Image/PNG":                  "image/png",
		"text/plain;charset=utf-8":   "text/plain; charset=utf-8",
		`text/plain; name="a b.txt"`: `text/plain; name="a b.txt"`,
	} {
		if got, err := checkType(declared); err != nil || got != want {
			t.Errorf("%q becomes %q, %v; want %q", declared, got, err, want)
		}
	}
	for _, declared := range []string{"png", "image/", "/png", "a/b/c", "text/plain; x", "text/plain; a=\"\xff\"\"", "image/\u00e4"} {
		if got, err := checkType(declared); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q becomes %q, %v", declared, got, err)
		}
	}
}

func TestEveryExtensionIsOfOneType(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range extensionTypes {
		if seen[e.extension] {
			t.Errorf("%s is in the table twice", e.extension)
		}
		seen[e.extension] = true
		if canonical, err := checkType(e.mimeType); err != nil || canonical != e.mimeType {
			t.Errorf("the type of %s is %s, in canonical form %s, %v", e.extension, e.mimeType, canonical, err)
		}
		if back := extensionOf(e.mimeType); typeOfName("a"+back) != e.mimeType {
			t.Errorf("%s stands for %s, whose extension is %s", e.extension, e.mimeType, back)
		}
	}
}

// FuzzFileType sees that nothing makes the type other than well-formed, and that no page is kept as a picture.
func FuzzFileType(f *testing.F) {
	f.Add("image/png", "a.png", []byte("<html>"))
	f.Add("", "a.docx", []byte("PK\x03\x04"))
	f.Add("text/plain; charset=\"a b\"", "", []byte{0, 1, 2})
	f.Fuzz(func(t *testing.T, declared, name string, head []byte) {
		checked, err := checkType(declared)
		if err != nil {
			return
		}
		got, err := fileType(checked, name, head)
		if err != nil {
			return
		}
		if again, err := checkType(got); err != nil || again != got {
			t.Errorf("the type is %q; brought to its form again, %q, %v", got, again, err)
		}
		if strings.HasPrefix(got, "image/") && got != svgType && typeOfBytes(head) == htmlType {
			t.Errorf("a page is kept as %s", got)
		}
	})
}
