// Package filetype finds the type of a file. It keeps a declared type unless the bytes clearly contradict it: a
// page with scripts must not be stored as a picture. Without a declared type the bytes decide, then the name.
//
// github.com/gabriel-vasile/mimetype reads the bytes. The table of extensions is our own: package mime's differs
// from system to system.
package filetype

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"
)

const (
	anyBytes  = "application/octet-stream"
	plainText = "text/plain; charset=utf-8"
	markdown  = "text/markdown; charset=utf-8"
	htmlType  = "text/html"
	svgType   = "image/svg+xml"
	xmlType   = "application/xml"
	sniffed   = 4096 // bytes to examine, as in mimetype
)

// extensionTypes are the types that a name identifies better than the bytes: texts, and files that begin like other
// types. The first extension of a type is used for a file without a name.
var extensionTypes = []struct{ extension, mimeType string }{
	{".txt", plainText}, {".log", plainText}, {".md", markdown}, {".markdown", markdown},
	{".html", htmlType}, {".htm", htmlType}, {".css", "text/css"}, {".csv", "text/csv"},
	{".tsv", "text/tab-separated-values"},
	{".js", "text/javascript"}, {".mjs", "text/javascript"}, {".json", "application/json"},
	{".jsonl", "application/jsonl"},
	{".xml", xmlType}, {".yaml", "application/yaml"}, {".yml", "application/yaml"}, {".toml", "application/toml"},
	{".ics", "text/calendar"}, {".vcf", "text/vcard"}, {".eml", "message/rfc822"}, {".svg", svgType},
	{".go", plainText}, {".py", plainText}, {".rs", plainText}, {".c", plainText}, {".h", plainText}, {".cpp", plainText},
	{".java", plainText}, {".kt", plainText}, {".ts", plainText}, {".tsx", plainText}, {".jsx", plainText},
	{".sh", plainText},
	{".sql", plainText}, {".rb", plainText}, {".php", plainText}, {".ini", plainText}, {".conf", plainText},
	{".ipynb", "application/x-ipynb+json"},
	{".m4a", "audio/mp4"}, {".mp4", "video/mp4"}, {".m4v", "video/mp4"}, {".ogg", "audio/ogg"}, {".oga", "audio/ogg"},
	{".opus", "audio/ogg"}, {".ogv", "video/ogg"}, {".webm", "video/webm"}, {".mkv", "video/matroska"},
	{".docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
	{".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	{".pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
	{".odt", "application/vnd.oasis.opendocument.text"}, {".ods", "application/vnd.oasis.opendocument.spreadsheet"},
	{".odp", "application/vnd.oasis.opendocument.presentation"}, {".epub", "application/epub+zip"},
	{".jar", "application/java-archive"},
	{".doc", "application/msword"}, {".xls", "application/vnd.ms-excel"}, {".ppt", "application/vnd.ms-powerpoint"},
}

// registered are the names registered at IANA for types that mimetype names differently.
var registered = map[string]string{
	"application/ogg": "audio/ogg", "audio/x-m4a": "audio/mp4", "video/x-m4v": "video/mp4", "text/xml": xmlType,
	"application/xhtml+xml": htmlType, "text/rtf": "application/rtf", "image/x-icon": "image/vnd.microsoft.icon",
}

// certainTexts are the types of text that the bytes identify for certain. CSV, JSON and letters are guesses.
var certainTexts = []string{htmlType, svgType, xmlType, "application/rtf", "text/x-shellscript"}

// htmlBeginnings are the beginnings that browsers take for HTML if a space or > follows: WHATWG, MIME Sniffing,
// 7.1.
var htmlBeginnings = []string{
	"<!doctype html", "<html", "<head", "<script", "<iframe", "<h1", "<div", "<font", "<table", "<a", "<style", "<title",
	"<b",
	"<body", "<br", "<p", "<!--",
}

// Of returns the type of a file from its declared type (empty: none), its name and its first bytes. If the bytes
// contradict the declared type, mimeType is empty and contradiction is the type of the bytes.
func Of(declared, filename string, head []byte) (mimeType, contradiction string) {
	found := ofBytes(head)
	declaredAs := essence(declared)
	if declaredAs == "" || declaredAs == anyBytes {
		return undeclared(found, ofName(filename), head), ""
	}
	isImage := strings.HasPrefix(declaredAs, "image/")
	switch {
	case !isImage && !isContainer(declaredAs) && declaredAs != "application/pdf": // a wrong name does no harm
		return declared, ""
	case found == "" || found == declaredAs || isContainer(declaredAs) && isContainer(found) || refines(declaredAs, found):
		return declared, ""
	case isImage && strings.HasPrefix(found, "image/") && found != svgType:
		if mimetype.Lookup(declaredAs) == nil {
			return declared, "" // such as a camera's raw format, which begins like TIFF
		}
		return found, "" // one picture format for another: the bytes are right
	case declaredAs == svgType && found == xmlType,
		declaredAs == svgType && found == htmlType && bytes.Contains(head[:min(len(head), sniffed)], []byte("<svg")):
		return declared, "" // with a comment before its first element
	}
	return "", found
}

// Extension returns the extension for files of a type, "" if none is known.
func Extension(mimeType string) string {
	for _, e := range extensionTypes {
		if e.mimeType == mimeType {
			return e.extension
		}
	}
	if known := mimetype.Lookup(mimeType); known != nil {
		return known.Extension()
	}
	return ""
}

// undeclared returns the type from the bytes, or from the name where that is more specific.
func undeclared(found, byName string, head []byte) string {
	text := isText(head)
	named := byName != "" && (mimetype.Lookup(byName) == nil || isTextual(byName)) // a type that only its name identifies
	switch {
	case len(head) == 0:
		return cmp.Or(byName, anyBytes)
	case refines(byName, found), isContainer(found) && isContainer(byName), text && named:
		return byName
	case found != "":
		return found
	case text:
		return plainText
	case named && !strings.HasPrefix(byName, "text/"):
		return byName
	case named && !isBinary(head): // of another encoding than UTF-8
		return essence(byName)
	}
	return anyBytes
}

// essence returns a type without its parameters.
func essence(mimeType string) string {
	kind, _, _ := strings.Cut(mimeType, ";")
	return kind
}

// refines reports whether files of one type are also of another (a Word document is a ZIP archive), or whether
// both are names of one type.
func refines(mimeType, other string) bool {
	for known := mimetype.Lookup(mimeType); known != nil; known = known.Parent() {
		switch {
		case known.Is(anyBytes), known.Is("text/plain"):
			return false
		case known.Is(other), nameOf(known) == other:
			return true
		}
	}
	return false
}

// isTextual reports whether files of a type are texts.
func isTextual(mimeType string) bool {
	for known := mimetype.Lookup(mimeType); known != nil; known = known.Parent() {
		if known.Is("text/plain") {
			return true
		}
	}
	return false
}

// isContainer reports whether a type is audio or video, which share their containers.
func isContainer(mimeType string) bool {
	return strings.HasPrefix(mimeType, "audio/") || strings.HasPrefix(mimeType, "video/")
}

// ofName returns the type of a file name's extension, "" for an unknown one.
func ofName(filename string) string {
	extension := strings.ToLower(path.Ext(filename))
	for _, e := range extensionTypes {
		if e.extension == extension {
			return e.mimeType
		}
	}
	return ""
}

// nameOf returns our name for a type.
func nameOf(known *mimetype.MIME) string {
	name := essence(known.String())
	return cmp.Or(registered[name], name)
}

// ofBytes returns the type that the first bytes of a file identify with certainty, or "".
func ofBytes(head []byte) string {
	head = head[:min(len(head), sniffed)]
	text := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), "\t\n\f\r "))
	begins := func(with string) bool { return bytes.HasPrefix(text, []byte(with)) }
	if begins("<?xml") || begins("<!doctype svg") || begins("<svg") {
		switch { // mimetype is stricter than browsers
		case bytes.Contains(text, []byte("<svg")):
			return svgType
		case bytes.Contains(text, []byte("<html")):
			return htmlType
		}
	}
	if slices.ContainsFunc(htmlBeginnings, func(tag string) bool {
		return begins(tag) && (tag == "<!--" || len(text) > len(tag) && (text[len(tag)] == ' ' || text[len(tag)] == '>'))
	}) {
		return htmlType // even with zero bytes, which mimetype treats as binary
	}
	known := mimetype.Detect(head)
	if name := nameOf(known); name != anyBytes && (!isTextual(known.String()) || slices.Contains(certainTexts, name)) {
		return name
	}
	return ""
}

// IsText reports whether a file with this content, or the beginning of its content, is text that programs may
// change: without zero bytes, and not PDF, whose offsets would then be wrong.
func IsText(mimeType string, data []byte) bool {
	kind := essence(mimeType)
	return kind != "application/pdf" && bytes.IndexByte(data, 0) < 0 &&
		(strings.HasPrefix(kind, "text/") || isTextual(kind) || isText(data))
}

// isText reports whether the beginning of a file is text in UTF-8.
func isText(head []byte) bool {
	cut := len(head) > sniffed
	head = head[:min(len(head), sniffed)]
	if isBinary(head) {
		return false
	}
	for len(head) > 0 {
		r, size := utf8.DecodeRune(head)
		if r == utf8.RuneError && size == 1 {
			return cut && !utf8.FullRune(head)
		}
		head = head[size:]
	}
	return true
}

// isBinary reports whether the beginning of a file has control characters that texts do not contain.
func isBinary(head []byte) bool {
	return slices.ContainsFunc(head[:min(len(head), sniffed)], func(c byte) bool {
		return c < ' ' && strings.IndexByte("\t\n\f\r\x1b", c) < 0 || c == 0x7f
	})
}
