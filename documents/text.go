package documents

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/souvenir-ai/souvenir"
)

// decode returns a text in UTF-8: as declared, by its byte order mark, or as its bytes suggest.
func decode(data []byte, charset string) string {
	switch {
	case strings.HasPrefix(string(data[:min(3, len(data))]), "\xef\xbb\xbf"):
		charset = "utf-8"
	case strings.HasPrefix(string(data[:min(2, len(data))]), "\xff\xfe"):
		charset = "utf-16le"
	case strings.HasPrefix(string(data[:min(2, len(data))]), "\xfe\xff"):
		charset = "utf-16be"
	case valid(data):
		return strings.ToValidUTF8(string(data), "")
	case charset == "" || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "us-ascii"):
		charset = "windows-1252"
		if text, err := simplifiedchinese.GB18030.NewDecoder().Bytes(data); err == nil && chinese(string(text)) {
			return string(text)
		}
	}
	if e, err := htmlindex.Get(charset); err == nil {
		if text, err := e.NewDecoder().Bytes(data); err == nil {
			return strings.TrimPrefix(string(text), "\ufeff")
		}
	}
	return strings.ToValidUTF8(string(data), "\ufffd")
}

// valid reports whether bytes are UTF-8. The last character may be cut.
func valid(data []byte) bool {
	for cut := range utf8.UTFMax {
		if cut > 0 && len(data) < maxBytes {
			return false
		}
		if utf8.Valid(data[:len(data)-cut]) {
			return true
		}
	}
	return false
}

// chinese reports whether most characters beyond ASCII are Chinese ones or their punctuation.
func chinese(text string) bool {
	han, others := 0, 0
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Han, r) || r >= 0x3000 && r < 0x3040 || r >= 0xff00 && r < 0xfff0:
			han++
		case r >= utf8.RuneSelf:
			others++
		}
	}
	return han > 4*others
}

// isBinary reports whether data is not text: it contains zeros, or mostly meaningless characters.
func isBinary(text string) bool {
	head := text[:min(len(text), 64<<10)]
	odd := 0
	for _, r := range head {
		if r == utf8.RuneError || r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\f' && r != '\x1b' {
			odd++
		}
	}
	return strings.Contains(head, "\x00") || odd > len(head)/10
}

// readLines reads plain text, or Markdown, whose headings name its places.
func readLines(text string, markdown bool) souvenir.DocumentText {
	var w writer
	section, fence := "", ""
	for number := 1; text != ""; number++ {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		if markdown {
			trimmed := strings.TrimLeft(line, " ")
			marks := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "#"))]
			switch {
			case fence != "":
				if strings.HasPrefix(trimmed, fence) {
					fence = ""
				}
			case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
				fence = trimmed[:3]
			case marks != "" && len(marks) <= 6 && strings.HasPrefix(trimmed[len(marks):], " "):
				section = heading(strings.Trim(trimmed, "# \r"))
			}
		}
		name := "line " + strconv.Itoa(number)
		if section != "" {
			name += ", " + section
		}
		w.place(name)
		if w.add(line+"\n") != nil {
			break
		}
	}
	return w.result()
}

// readTable reads rows, each as "column: value; column: value", so that each row makes sense on its own.
func readTable(ctx context.Context, text string, comma rune) (souvenir.DocumentText, error) {
	var w writer
	rows := csv.NewReader(strings.NewReader(text))
	rows.Comma, rows.FieldsPerRecord, rows.LazyQuotes, rows.ReuseRecord = comma, -1, true, true
	var columns []string
	for ctx.Err() == nil {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return w.result(), nil
		}
		if err != nil {
			return readLines(text, false), nil //nolint:nilerr // it is a text, but no table
		}
		line, _ := rows.FieldPos(0)
		if columns == nil {
			columns = append([]string{}, row...)
			continue
		}
		var cells []string
		for i, cell := range row {
			if cell = strings.TrimSpace(cell); cell == "" {
				continue
			}
			if i < len(columns) && strings.TrimSpace(columns[i]) != "" {
				cell = strings.TrimSpace(columns[i]) + ": " + cell
			}
			cells = append(cells, cell)
		}
		w.place("line " + strconv.Itoa(line))
		if w.add(strings.Join(cells, "; ")+"\n") != nil {
			break
		}
	}
	return w.result(), ctx.Err()
}

// level is an object or a list that is being read.
type level struct {
	list  bool
	count int    // of a list's elements so far
	key   string // of the next value of an object; empty: a key comes next
	named bool   // key is set
}

// pathOf returns where a value is, by its last few levels.
func pathOf(levels []level) string {
	var b strings.Builder
	for _, l := range levels[max(0, len(levels)-3):] {
		switch {
		case l.list:
			fmt.Fprintf(&b, "[%d]", l.count)
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(heading(l.key))
		}
	}
	return b.String()
}

// readJSON reads JSON, or lines of it, as one line "path: value" for each value.
func readJSON(ctx context.Context, text string) (souvenir.DocumentText, error) {
	var w writer
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var levels []level
	for documents := 1; ctx.Err() == nil; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && len(levels) == 0 {
			return w.result(), nil
		}
		if err != nil {
			return readLines(text, false), nil //nolint:nilerr // no JSON, or the beginning of it
		}
		delimiter, isDelimiter := token.(json.Delim)
		if isDelimiter && (delimiter == '}' || delimiter == ']') {
			levels = levels[:len(levels)-1]
		} else if n := len(levels); n > 0 && !levels[n-1].list && !levels[n-1].named {
			levels[n-1].key, _ = token.(string)
			levels[n-1].named = true
			continue
		} else if isDelimiter {
			if levels = append(levels, level{list: delimiter == '['}); len(levels) > 1000 {
				return readLines(text, false), nil
			}
			continue
		} else if w.value(levels, token, documents) != nil {
			break
		}
		if n := len(levels); n > 0 { // a value has ended
			levels[n-1].count++
			levels[n-1].named = false
		} else {
			documents++
		}
	}
	return w.result(), ctx.Err()
}

// value writes a value of JSON.
func (w *writer) value(levels []level, token json.Token, document int) error {
	if token == nil {
		return nil
	}
	switch {
	case len(levels) > 0:
		w.place(pathOf(levels[:min(len(levels), 2)]))
	default:
		w.place("value " + strconv.Itoa(document))
	}
	if at := pathOf(levels); at != "" {
		if err := w.add(at + ": "); err != nil {
			return err
		}
	}
	return w.add(fmt.Sprint(token) + "\n")
}
