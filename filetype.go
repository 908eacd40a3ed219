package souvenir

import (
	"bytes"
	"cmp"
	"mime"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// What type a file is of. A declared type is taken as it is, unless the bytes say clearly that it is something else: a
// page with scripts must not be kept as a picture. Without a declared type the bytes decide, then the extension. The
// tables are our own, so that the answer is the same on every system.

const (
	anyBytes  = "application/octet-stream"
	plainText = "text/plain; charset=utf-8"
	htmlType  = "text/html"
	svgType   = "image/svg+xml"
	zipType   = "application/zip"
	maxType   = 255  // bytes of a type with its parameters
	sniffed   = 4096 // bytes that are looked at
)

// extensionTypes are the types of the extensions that people upload. The first extension of a type is the one for a
// file that comes without a name.
var extensionTypes = []struct{ extension, mimeType string }{
	{".txt", plainText}, {".log", plainText}, {".md", "text/markdown; charset=utf-8"}, {".markdown", "text/markdown; charset=utf-8"},
	{".html", htmlType}, {".htm", htmlType}, {".css", "text/css"}, {".csv", "text/csv"}, {".tsv", "text/tab-separated-values"},
	{".js", "text/javascript"}, {".mjs", "text/javascript"}, {".json", "application/json"}, {".jsonl", "application/jsonl"},
	{".xml", "application/xml"}, {".yaml", "application/yaml"}, {".yml", "application/yaml"}, {".toml", "application/toml"},
	{".ics", "text/calendar"}, {".vcf", "text/vcard"}, {".eml", "message/rfc822"}, {".rtf", "application/rtf"},
	{".go", plainText}, {".py", plainText}, {".rs", plainText}, {".c", plainText}, {".h", plainText}, {".cpp", plainText},
	{".java", plainText}, {".kt", plainText}, {".ts", plainText}, {".tsx", plainText}, {".jsx", plainText}, {".sh", plainText},
	{".sql", plainText}, {".rb", plainText}, {".php", plainText}, {".ini", plainText}, {".conf", plainText},
	{".pdf", "application/pdf"}, {".ps", "application/postscript"},
	{".png", "image/png"}, {".jpg", "image/jpeg"}, {".jpeg", "image/jpeg"}, {".gif", "image/gif"}, {".webp", "image/webp"},
	{".avif", "image/avif"}, {".heic", "image/heic"}, {".bmp", "image/bmp"}, {".tif", "image/tiff"}, {".tiff", "image/tiff"},
	{".ico", "image/vnd.microsoft.icon"}, {".svg", svgType}, {".psd", "image/vnd.adobe.photoshop"},
	{".mp3", "audio/mpeg"}, {".wav", "audio/wav"}, {".flac", "audio/flac"}, {".ogg", "audio/ogg"}, {".oga", "audio/ogg"},
	{".opus", "audio/ogg"}, {".m4a", "audio/mp4"}, {".aac", "audio/aac"}, {".mid", "audio/midi"},
	{".mp4", "video/mp4"}, {".m4v", "video/mp4"}, {".mov", "video/quicktime"}, {".webm", "video/webm"}, {".mkv", "video/matroska"},
	{".avi", "video/x-msvideo"}, {".ogv", "video/ogg"}, {".mpg", "video/mpeg"},
	{".zip", zipType}, {".gz", "application/gzip"}, {".tgz", "application/gzip"}, {".tar", "application/x-tar"}, {".bz2", "application/x-bzip2"},
	{".xz", "application/x-xz"}, {".zst", "application/zstd"}, {".7z", "application/x-7z-compressed"}, {".rar", "application/vnd.rar"},
	{".docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
	{".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	{".pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
	{".odt", "application/vnd.oasis.opendocument.text"}, {".ods", "application/vnd.oasis.opendocument.spreadsheet"},
	{".odp", "application/vnd.oasis.opendocument.presentation"}, {".epub", "application/epub+zip"}, {".jar", "application/java-archive"},
	{".doc", "application/msword"}, {".xls", "application/vnd.ms-excel"}, {".ppt", "application/vnd.ms-powerpoint"},
	{".ttf", "font/ttf"}, {".otf", "font/otf"}, {".woff", "font/woff"}, {".woff2", "font/woff2"},
	{".sqlite", "application/vnd.sqlite3"}, {".wasm", "application/wasm"}, {".parquet", "application/vnd.apache.parquet"},
	{".ipynb", "application/x-ipynb+json"},
}

// zipped are the types whose files are ZIP archives; ole those in Microsoft's older container.
var (
	zipped = []string{".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".epub", ".jar"}
	ole    = []string{".doc", ".xls", ".ppt"}
)

const oleType = "application/x-ole-storage"

// signature is how the bytes of a type begin. A question mark stands for any byte.
type signature struct {
	offset   int
	begins   string
	mimeType string
}

// signatures are those of the WHATWG's MIME Sniffing standard (https://mimesniff.spec.whatwg.org) and of further
// formats that are told by their first bytes for certain.
var signatures = []signature{
	{0, "\x89PNG\r\n\x1a\n", "image/png"}, {0, "\xff\xd8\xff", "image/jpeg"}, {0, "GIF87a", "image/gif"}, {0, "GIF89a", "image/gif"},
	{0, "RIFF????WEBP", "image/webp"}, {0, "BM????\x00\x00\x00\x00", "image/bmp"}, {0, "II*\x00", "image/tiff"}, {0, "MM\x00*", "image/tiff"},
	{0, "8BPS\x00", "image/vnd.adobe.photoshop"}, {0, "\x00\x00\x01\x00?\x00", "image/vnd.microsoft.icon"},
	{4, "ftypavif", "image/avif"}, {4, "ftypavis", "image/avif"}, {4, "ftypheic", "image/heic"}, {4, "ftypheix", "image/heic"}, {4, "ftypmif1", "image/heic"},
	{4, "ftypM4A ", "audio/mp4"}, {4, "ftypqt  ", "video/quicktime"}, {4, "ftypiso", "video/mp4"}, {4, "ftypmp4", "video/mp4"},
	{4, "ftypavc1", "video/mp4"}, {4, "ftypM4V", "video/mp4"}, {4, "ftypMSNV", "video/mp4"}, {4, "ftypdash", "video/mp4"}, {4, "ftyp3gp", "video/mp4"},
	{0, "RIFF????WAVE", "audio/wav"}, {0, "RIFF????AVI ", "video/x-msvideo"}, {0, "FORM????AIFF", "audio/aiff"},
	{0, "ID3\x02", "audio/mpeg"}, {0, "ID3\x03", "audio/mpeg"}, {0, "ID3\x04", "audio/mpeg"}, {0, "\xff\xfb", "audio/mpeg"}, {0, "\xff\xf3", "audio/mpeg"},
	{0, "\xff\xf1", "audio/aac"}, {0, "\xff\xf9", "audio/aac"}, {0, "fLaC", "audio/flac"}, {0, "OggS\x00", "audio/ogg"}, {0, "MThd\x00\x00\x00\x06", "audio/midi"},
	{0, "\x1a\x45\xdf\xa3", "video/webm"}, {0, "FLV\x01", "video/x-flv"}, {0, "\x00\x00\x01\xba", "video/mpeg"}, {0, "\x00\x00\x01\xb3", "video/mpeg"},
	{0, "%PDF-", "application/pdf"}, {0, `{\rtf`, "application/rtf"},
	{0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", oleType},
	{0, "PK\x03\x04", zipType}, {0, "PK\x05\x06", zipType}, {0, "\x1f\x8b\x08", "application/gzip"}, {0, "BZh?1AY&SY", "application/x-bzip2"},
	{0, "\xfd7zXZ\x00", "application/x-xz"}, {0, "\x28\xb5\x2f\xfd", "application/zstd"}, {0, "7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"},
	{0, "Rar!\x1a\x07", "application/vnd.rar"}, {257, "ustar", "application/x-tar"},
	{0, "wOFF", "font/woff"}, {0, "wOF2", "font/woff2"}, {0, "OTTO\x00", "font/otf"}, {0, "\x00\x01\x00\x00\x00", "font/ttf"},
	{0, "SQLite format 3\x00", "application/vnd.sqlite3"}, {0, "\x00asm\x01", "application/wasm"}, {0, "PAR1", "application/vnd.apache.parquet"},
	{0, "\x7fELF", "application/x-executable"}, {0, "MZ??????????????????????????????????????", "application/vnd.microsoft.portable-executable"},
	{0, "\xcf\xfa\xed\xfe", "application/x-mach-binary"}, {0, "\xca\xfe\xba\xbe", "application/x-mach-binary"},
	{0, "#!/", "text/x-shellscript"},
}

// markup are the beginnings by which browsers know HTML (MIME Sniffing, section 7.1), in lower case; what follows must
// be a space or ">".
var markup = []string{
	"<!doctype html", "<html", "<head", "<script", "<iframe", "<h1", "<div", "<font", "<table", "<a", "<style",
	"<title", "<b", "<body", "<br", "<p", "<!--",
}

// fileType decides about the type of a file: declared by who stores it (empty: not), of this name, beginning with these bytes.
func fileType(declared, filename string, head []byte) (string, error) {
	found := typeOfBytes(head)
	essence, _, _ := strings.Cut(declared, ";")
	if essence == "" || essence == anyBytes {
		return undeclaredType(found, typeOfName(filename), filename, head), nil
	}
	isImage := strings.HasPrefix(essence, "image/")
	switch {
	case !isImage && !isContainer(essence) && essence != "application/pdf": // what else there is does no harm under a wrong name
		return declared, nil
	case found == "" || found == essence || isContainer(essence) && isContainer(found):
		return declared, nil
	case isImage && strings.HasPrefix(found, "image/") && found != svgType:
		if signatureOf(essence) == "" && essence != svgType {
			return declared, nil // such as a camera's raw format, which begins as TIFF does
		}
		return found, nil // one picture for another: the bytes are right
	case essence == svgType && (found == "application/xml" || found == htmlType && bytes.Contains(head[:min(len(head), sniffed)], []byte("<svg"))):
		return declared, nil // with a comment before its first element
	}
	return "", invalid("mime_type", "mime_type is %s, but the content is of type %s; give the right type, or leave mime_type out", show(declared), show(found))
}

// undeclaredType is what the bytes say, and what the name says where it says more.
func undeclaredType(found, byName, filename string, head []byte) string {
	extension := strings.ToLower(path.Ext(filename))
	text := isText(head)
	named := byName != "" && signatureOf(byName) == "" // a type that only its name tells
	switch {
	case len(head) == 0:
		return cmp.Or(byName, anyBytes)
	case found == zipType && slices.Contains(zipped, extension), found == oleType && slices.Contains(ole, extension),
		isContainer(found) && isContainer(byName), text && named:
		return byName
	case found != "":
		return found
	case text:
		return plainText
	case named && !strings.HasPrefix(byName, "text/"):
		return byName
	case named && !isBinary(head): // of another encoding than UTF-8
		essence, _, _ := strings.Cut(byName, ";")
		return essence
	}
	return anyBytes
}

// isContainer reports whether a type is sound or film, which share their containers.
func isContainer(mimeType string) bool {
	return strings.HasPrefix(mimeType, "audio/") || strings.HasPrefix(mimeType, "video/")
}

// signatureOf returns how files of a type begin, "" where that is not known.
func signatureOf(mimeType string) string {
	for _, s := range signatures {
		if s.mimeType == mimeType {
			return s.begins
		}
	}
	return ""
}

// typeOfName is the type that an extension stands for, "" for an unknown one.
func typeOfName(filename string) string {
	extension := strings.ToLower(path.Ext(filename))
	for _, e := range extensionTypes {
		if e.extension == extension {
			return e.mimeType
		}
	}
	return ""
}

// extensionOf is the extension for files of a type, "" if none is known.
func extensionOf(mimeType string) string {
	for _, e := range extensionTypes {
		if e.mimeType == mimeType {
			return e.extension
		}
	}
	return ""
}

// typeOfBytes is the type that the first bytes of a file show for certain; "" when they do not.
func typeOfBytes(head []byte) string {
	head = head[:min(len(head), sniffed)]
	for _, s := range signatures {
		if s.fits(head) {
			return s.mimeType
		}
	}
	text := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), "\t\n\f\r "))
	if bytes.HasPrefix(text, []byte("<?xml")) || bytes.HasPrefix(text, []byte("<!doctype svg")) || startsTag(text, "<svg") {
		switch {
		case bytes.Contains(text, []byte("<svg")):
			return svgType
		case bytes.Contains(text, []byte("<html")):
			return htmlType
		}
		return "application/xml"
	}
	for _, tag := range markup {
		if startsTag(text, tag) {
			return htmlType
		}
	}
	return ""
}

func (s signature) fits(head []byte) bool {
	if len(head) < s.offset+len(s.begins) {
		return false
	}
	for i := range len(s.begins) {
		if c := s.begins[i]; c != '?' && c != head[s.offset+i] {
			return false
		}
	}
	return true
}

func startsTag(text []byte, tag string) bool {
	rest, found := bytes.CutPrefix(text, []byte(tag))
	return found && len(rest) > 0 && strings.IndexByte(" \t\n\f\r>", rest[0]) >= 0
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

// isBinary reports whether the beginning of a file has control characters that texts do not have.
func isBinary(head []byte) bool {
	return slices.ContainsFunc(head[:min(len(head), sniffed)], func(c byte) bool {
		return c < ' ' && strings.IndexByte("\t\n\f\r\x1b", c) < 0 || c == 0x7f
	})
}

// checkType brings a declared type to its usual form. Empty stays empty.
func checkType(declared string) (string, error) {
	if strings.TrimSpace(declared) == "" {
		return "", nil
	}
	mediaType, parameters, err := mime.ParseMediaType(declared)
	kind, subtype, found := strings.Cut(mediaType, "/")
	if err != nil || !found || kind == "" || subtype == "" || len(declared) > maxType {
		return "", invalid("mime_type", `mime_type is %s; a type such as "text/plain" or "image/png" is expected, at most %d bytes long`, show(declared), maxType)
	}
	formatted := mime.FormatMediaType(mediaType, parameters)
	if formatted == "" {
		return "", invalid("mime_type", "mime_type is %s, which has a parameter that cannot be written", show(declared))
	}
	return formatted, nil
}
