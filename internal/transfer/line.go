package transfer

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/files/chunked"
	"github.com/souvenir-ai/souvenir/internal/json/jsonescape"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// The lines of an export: how they are written and read. docs/export-format.md describes the format.

// The form of an export.
const (
	exportVersion = 2       // with namespaces, which a reader of version 1 would mix up
	plainVersion  = 1       // without
	MaxLine       = 8 << 20 // bytes: enough for 1 MiB of content with every byte escaped
	ExportTime    = "2006-01-02T15:04:05.000000Z07:00"
)

// exportHeader is the first line.
type exportHeader struct {
	Souvenir  string `json:"souvenir"` // exportMark
	Version   int    `json:"version"`
	CreatedAt string `json:"created_at,omitempty"`

	// Sealed means that a last line has counts and a hash, so that truncation is detected. Handmade files have no such
	// line.
	Sealed bool `json:"sealed,omitempty"`
}

const exportMark = "export"

// exportEnd is the last line of a sealed export.
type exportEnd struct {
	Counts map[string]int `json:"counts"`
	SHA256 string         `json:"sha256"` // hex; of all lines before, each with a newline at its end
}

// lineWriter builds one line. It is several times as fast as encoding/json, which would take most of the time of an
// export.
type lineWriter struct {
	buf  []byte
	kind string
	err  error // the first value that JSON cannot hold
}

func (l *lineWriter) begin(kind string) {
	l.kind = kind
	l.buf = append(l.buf[:0], `{"type":"`...)
	l.buf = append(l.buf, kind...)
	l.buf = append(l.buf, '"')
}

func (l *lineWriter) key(name string) {
	l.buf = append(l.buf, ',', '"')
	l.buf = append(l.buf, name...)
	l.buf = append(l.buf, '"', ':')
}

func (l *lineWriter) text(name, value string) {
	l.key(name)
	l.string(name, value)
}

// optional omits an empty text.
func (l *lineWriter) optional(name, value string) {
	if value != "" {
		l.text(name, value)
	}
}

func (l *lineWriter) texts(name string, values []string) {
	l.key(name)
	l.buf = append(l.buf, '[')
	for i, v := range values {
		if i > 0 {
			l.buf = append(l.buf, ',')
		}
		l.string(name, v)
	}
	l.buf = append(l.buf, ']')
}

func (l *lineWriter) number(name string, value int64) {
	l.key(name)
	l.buf = strconv.AppendInt(l.buf, value, 10)
}

func (l *lineWriter) time(name string, micros int64) {
	l.key(name)
	l.buf = append(l.buf, '"')
	l.buf = kernel.ToTime(micros).AppendFormat(l.buf, ExportTime)
	l.buf = append(l.buf, '"')
}

func (l *lineWriter) bytes(name string, value []byte) {
	l.key(name)
	l.base64(value)
}

func (l *lineWriter) base64(value []byte) {
	l.buf = append(l.buf, '"')
	l.buf = base64.StdEncoding.AppendEncode(l.buf, value)
	l.buf = append(l.buf, '"')
}

// json writes a value that is already JSON.
func (l *lineWriter) json(name, value string) {
	l.key(name)
	l.raw(name, value)
}

// raw appends JSON without the white space between its parts.
func (l *lineWriter) raw(name, value string) {
	compact, err := compactJSON(value)
	if err == nil && !utf8.ValidString(value) {
		err = errors.New("it is not UTF-8")
	}
	if err != nil {
		l.fail(name, err)
	}
	l.buf = append(l.buf, compact...)
}

// compactJSON removes white space. It is fast if there is none, as in the output of encoding/json.
func compactJSON(value string) (string, error) {
	if !strings.ContainsAny(value, " \t\r\n") && json.Valid([]byte(value)) {
		return value, nil
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, []byte(value))
	return compact.String(), err
}

// metadata writes the known keys that are set and the caller's own, as one object.
func (l *lineWriter) metadata(known []knownKey, tags []string, own string) {
	l.key("metadata")
	l.buf = append(l.buf, '{')
	for _, k := range known {
		if k.value != "" {
			l.member(k.name)
			l.string(k.name, k.value)
		}
	}
	if len(tags) > 0 {
		l.member("tags")
		l.buf = append(l.buf, '[')
		for i, tag := range tags {
			if i > 0 {
				l.buf = append(l.buf, ',')
			}
			l.string("tags", tag)
		}
		l.buf = append(l.buf, ']')
	}
	own = formatOwn(own)
	if own == "{}" {
		l.buf = append(l.buf, '}')
		return
	}
	if !strings.HasPrefix(own, "{") { // as encoding/json writes it
		l.fail("metadata", errors.New("it is not a JSON object"))
		return
	}
	if l.buf[len(l.buf)-1] != '{' {
		l.buf = append(l.buf, ',')
	}
	at := len(l.buf)
	l.raw("metadata", own)
	l.buf = append(l.buf[:at], l.buf[min(at+1, len(l.buf)):]...) // raw has written the brace
}

// formatOwn returns own metadata as JSON in the form for callers: keys named like known ones are in a custom object.
func formatOwn(own string) string {
	named := func(key string) bool { return strings.Contains(own, `"`+key+`"`) }
	if !named(kernel.CustomKey) && !slices.ContainsFunc(kernel.KnownKeys, named) {
		return own
	}
	object, err := jsonobject.Decode([]byte(own))
	if err != nil {
		return own // the method metadata reports it
	}
	shown, err := json.Marshal(kernel.Attributes{Own: object}.Shown())
	if err != nil {
		return own
	}
	return string(shown)
}

type knownKey struct{ name, value string }

// member begins a member of an object, with a comma if needed.
func (l *lineWriter) member(name string) {
	if l.buf[len(l.buf)-1] == '{' {
		l.buf = append(l.buf, '"')
		l.buf = append(l.buf, name...)
		l.buf = append(l.buf, '"', ':')
		return
	}
	l.key(name)
}

// string escapes what RFC 8259, section 7, requires, and nothing else.
func (l *lineWriter) string(name, s string) {
	if !utf8.ValidString(s) {
		l.fail(name, errors.New("it is not UTF-8"))
		return
	}
	const hex = "0123456789abcdef"
	b, start := l.buf, 0
	b = append(b, '"')
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	b = append(b, s[start:]...)
	b = append(b, '"')
	l.buf = b
}

func (l *lineWriter) fail(name string, err error) {
	if l.err == nil {
		l.err = fault.Damaged(err, "%s of a line of type %q (Check reports which one)", name, l.kind)
	}
}

// end returns the whole line.
func (l *lineWriter) end() ([]byte, error) {
	l.buf = append(l.buf, '}', '\n')
	return l.buf, l.err
}

// lineReader reads lines, none longer than maxLine. It ignores blank lines, a byte order mark and carriage returns at
// the ends of lines.
type lineReader struct {
	r     *bufio.Reader
	line  []byte
	n     int // number of the last line read, from 1
	bytes int64
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(chunked.Strict{Reader: r}, 64<<10)}
}

// next returns the next line without its end, valid until the next call; io.EOF after the last.
func (l *lineReader) next() ([]byte, error) {
	for {
		line, err := l.read()
		if err != nil {
			return nil, err
		}
		if l.n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

func (l *lineReader) read() ([]byte, error) {
	l.line = l.line[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.line) == 0 && len(part) > 0 {
			l.n++
		}
		l.bytes += int64(len(part))
		if len(l.line)+len(part) > MaxLine {
			return nil, fault.New(fault.KindTooLarge, "", "line %d is longer than %d bytes, the maximum", l.n,
				MaxLine)
		}
		l.line = append(l.line, part...)
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(l.line) > 0:
			return l.line, nil
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("the export cannot be read after line %d: %w", l.n, err)
		}
	}
}

// LineKind returns the type of a line, and an error if the line is not a JSON object with a type.
func LineKind(line []byte) (string, error) {
	if rest, ok := bytes.CutPrefix(line, []byte(`{"type":"`)); ok {
		if i := bytes.IndexAny(rest, `"\`); i > 0 && rest[i] == '"' {
			return string(rest[:i]), nil
		}
	}
	var kind struct {
		Type *string `json:"type"`
	}
	if err := decodeLine(line, &kind); err != nil {
		return "", err
	}
	if kind.Type == nil {
		return "", fault.Invalid("type", "type is missing; each line needs one, such as %q", KindMemory)
	}
	return *kind.Type, nil
}

// decodeLine reads a JSON object into a struct, and returns errors in the package's own words.
func decodeLine(line []byte, into any) error {
	if !utf8.Valid(line) {
		return valid.NotUTF8("line", string(line))
	}
	err := json.Unmarshal(line, into)
	var mismatch *json.UnmarshalTypeError
	var corrupt base64.CorruptInputError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mismatch) && mismatch.Field != "":
		return fault.Invalid(mismatch.Field, "%s is a JSON %s; expected %s", mismatch.Field, mismatch.Value,
			expected(mismatch.Type.Kind().String()))
	case errors.As(err, &corrupt):
		return fault.Invalid("", "a value is not base64: %v", err)
	}
	return fault.Invalid("", "%s is not a JSON object: %v", fault.Show(string(line)), err)
}

// checkEscapes refuses half of a character in a line of a handmade file: decoding would replace it.
func checkEscapes(line []byte) error {
	if escape, at := jsonescape.LoneSurrogate(line); at >= 0 {
		return fault.Invalid("",
			"the escape %s at byte %d is half of a character; write both halves, or the character itself", escape, at)
	}
	return nil
}

func expected(kind string) string {
	switch {
	case kind == "string":
		return "a string"
	case kind == "slice":
		return "a list"
	case kind == "map", kind == "struct":
		return "an object"
	case strings.HasPrefix(kind, "int"):
		return "a whole number"
	}
	return "a " + kind
}

// parseTime reads a time of an export, in microseconds.
func parseTime(name, value string) (int64, error) {
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return 0, fault.Invalid(name, "%s is %s; expected a time like 2026-11-21T08:00:00.000000Z (RFC 3339)", name,
			fault.Show(value))
	}
	return t.UnixMicro(), valid.Time(name, t.UnixMicro())
}
