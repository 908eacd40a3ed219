package markdown

import (
	"fmt"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"html/template"
	"runtime"
	"strings"
	"testing"
	"time"
)

// allocated returns how many bytes a function allocates, in all.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// allowedBytes returns how many bytes rendering may allocate: a table of many cells comes closest.
func allowedBytes(length int) uint64 { return 1<<20 + 1500*uint64(length) }

// times repeats a part up to a size in bytes.
func times(size int, part string) string { return strings.Repeat(part, max(size/len(part), 1)) }

// counted returns a text of parts that differ by a number.
func counted(size int, part func(int) string) string {
	var b strings.Builder
	for i := 1; b.Len() < size; i++ {
		b.WriteString(part(i))
	}
	return b.String()
}

// wideTable returns a table with few bytes for a row: goldmark makes a cell of each column in it.
func wideTable(columns, size int) string {
	head := strings.Repeat("|a", columns) + "\n" + strings.Repeat("|-", columns) + "\n"
	return head + times(max(size-len(head), 2), "|\n")
}

// attacks are texts that would cost far more than their length without limits.
func attacks(size int) map[string]string {
	in := func(part string) string { return times(size, part) }
	half := func(part string) string { return times(size/2, part) }
	nested := counted(size, func(i int) string { return strings.Repeat("  ", i) + "- a\n" })
	return map[string]string{
		"a table of 3,000 columns":       wideTable(min(3000, size/8), size),
		"a table of 300 columns":         wideTable(300, size),
		"a table of 70 columns":          wideTable(70, size),
		"tables below each other":        times(size, wideTable(70, 850)+"\n"),
		"a table in a quote":             "> " + strings.ReplaceAll(wideTable(min(1000, size/8), size), "\n", "\n> "),
		"a table in a list":              "- " + strings.ReplaceAll(wideTable(min(1000, size/8), size), "\n", "\n  "),
		"a table that is never sure":     "a\n" + in("|-|:|\n"),
		"pipes that are escaped":         "|a|b|\n|-|-|\n" + in("|`\\|`|\n"),
		"pipes in a code fence":          "```\n" + in("|-|-|-|-|\n"),
		"pairs of brackets":              in("[a]("),
		"pairs with an angle":            in("[a](<)"),
		"pairs with a title":             in("[a](b \""),
		"pairs with a title over lines":  in("[a](b (\n"),
		"brackets that close later":      half("[") + half("]"),
		"brackets in brackets":           times(size, strings.Repeat("[", 499)+strings.Repeat("]", 499)),
		"pictures in pictures":           half("![a") + half("](b)"),
		"second labels":                  in("[a]["),
		"emphasis in links":              in("[*a](b)"),
		"definitions":                    in("[a]: b\n"),
		"definitions with a title":       in("[a]: b\n(x\n"),
		"definitions that break":         in("[a]: b\n\"x\n"),
		"labels without an end":          in("[\n"),
		"one long address for many":      "[a]: " + half("b") + "\n\n" + half("[a] "),
		"one long title for many":        "[a]: b '" + half("\"") + "'\n\n" + half("[a] "),
		"one dangerous address for many": "[a]: javascript:" + half("b") + "\n\n" + half("[a] "),
		"stars and underscores":          half("*a ") + half("b_ "),
		"emphasis in emphasis":           in("*a **b "),
		"runs of stars":                  in("***a** *"),
		"backticks of all lengths": counted(size/2, func(i int) string { return strings.Repeat("`", i) + " " }) +
			half("a\n"),
		"comments":                           in("<!-- "),
		"tags over lines":                    in("<a b\n"),
		"entities":                           in("&amp;&#1;&#"),
		"quotes that are escaped":            in("\""),
		"a long line":                        in("a b "),
		"one word":                           in("a"),
		"addresses":                          in("(http://" + strings.Repeat("a", 250) + "/ "),
		"mail":                               in("a@b.c "),
		"parentheses with underscores":       in("(a_~~~"),
		"lists in lists":                     nested,
		"quotes in quotes":                   in("> > > > > > > > > > > > > > > > > > > > a\n"),
		"marks of all kinds":                 in("> - 1. + * "),
		"check boxes":                        in("- [ ] a\n"),
		"headings":                           in("# a\n"),
		"lines that are broken":              in("a\\\n"),
		"definitions as lists":               in("* [a]: b\n"),
		"bytes that are no characters":       in("\x80*"),
		"tabs":                               in("-\t\t"),
		"backslashes":                        in("\\["),
		"table cells with all kinds of text": in("|*a*|[b](c)|`d`|\n|-|-|-|\n"),
	}
}

// Each attack costs no more than its length allows, and is shown: formatted, or as stored with a note.
func TestRenderingIsBounded(t *testing.T) {
	longtest.Only(t)
	page("*warm*")
	for _, size := range []int{2 << 10, 24 << 10, MaxInput} {
		for name, source := range attacks(size) {
			source = source[:min(len(source), MaxInput)]
			began := time.Now()
			var html template.HTML
			took := allocated(func() { html = page(source) })
			if took > allowedBytes(len(source)) {
				t.Errorf("%s of %d bytes: %d bytes are allocated (%d for each); %d are allowed, want no more", name,
					len(source), took,
					int(took)/len(source), allowedBytes(len(source)))
			}
			if most := outputOf(len(source)) + len(tooComplex); len(html) > most || len(html) == 0 &&
				strings.TrimSpace(source) != "" && !strings.HasPrefix(source, "[") {
				t.Errorf("%s of %d bytes become %d, want some, within the bound", name, len(source), len(html))
			}
			t.Logf("%-36s %6d bytes: %9d allocated, %s, plain %t", name, len(source), took,
				time.Since(began).Round(time.Millisecond), strings.Contains(string(html), tooComplex))
		}
	}
}

// A refused text is shown in full, as stored.
func TestTextTooComplexAppearsAsStored(t *testing.T) {
	for name, source := range map[string]string{
		"a wide table": wideTable(3000, 20<<10), "brackets": times(24<<10, "[a]("), "deep quotes": times(1000, "> ") + "<b>",
		"deep emphasis": times(8<<10, "*a **b ") + times(8<<10, "c** d* "),
		"too long":      times(MaxInput+10, "a <b> "), "much from little": "[a]: " + times(20<<10, "&") + "\n\n" +
			times(20<<10, "[a] "),
	} {
		if got, want := page(source), plain(source, tooComplex); got != want {
			t.Errorf("%s is not shown as stored, but as %.200q; want %v", name, got, want)
		}
	}
}

// Real texts are formatted, however long: the limits only affect attacks.
func TestMarkdownIsFormatted(t *testing.T) {
	table := func(columns, rows int) string {
		row := strings.Repeat("| cell with *words* and `code` ", columns) + "|\n"
		return row + strings.Repeat("|:--", columns) + "|\n" + strings.Repeat(row, rows)
	}
	for name, source := range map[string]string{
		"a table": table(8, 200),
		"a table of empty cells": strings.Repeat("| ", 20) + "|\n" + strings.Repeat("|-", 20) + "|\n" +
			strings.Repeat(strings.Repeat("| ", 20)+"|\n", 400),
		"a table of short cells": "a|b|c\n-|-|-\n" + strings.Repeat("1|2|3\n", 5000),
		"links":                  times(60<<10, "- [a link](https://example.com/path?query=1 \"its title\") and words\n"),
		"links in one paragraph": times(40<<10, "see [one](https://example.com/1) and [two](https://example.com/2 'x'),\n"),
		"references": counted(30<<10, func(i int) string { return fmt.Sprintf("word [%d] ", i) }) + "\n\n" +
			counted(30<<10, func(i int) string { return fmt.Sprintf("[%d]: https://example.com/%d (title)\n", i, i) }),
		"prose in one line": times(60<<10,
			"Some words, *some of them* marked, `others` code_with_underscores (and so on). "),
		"code":         "```json\n" + times(60<<10, "[[1, 2], [3, {\"a\": [\"b\"]}]],\n") + "```\n",
		"Chinese":      times(60<<10, "**今天**的会议决定：`部署` 在星期二。\n\n"),
		"nested lists": times(40<<10, "- a\n  - b\n    - c\n      1. d\n\n         e\n"),
		"HTML":         times(40<<10, "text <b>bold</b> <a href=\"x\">y</a> <br/> <!-- note -->\n"),
		"addresses":    times(60<<10, "- https://example.com/a/b/c?d=e and www.example.com and a@example.com\n"),
		"a changelog": times(60<<10,
			"## v1.2.3\n\n* Fixed `x` (#123) by [@someone](https://example.com)\n* **Breaking**: _y_\n\n> quoted\n\n---\n\n"),
		"check boxes and a table": times(30<<10, "- [ ] T1 do *it*\n- [x] T2\n") + "\n" + table(5, 100),
		"a log": times(60<<10,
			"2026-01-01T00:00:00Z ERROR [main] a.b.C(D.java:1) <x> {\"y\": [1]} 'z' \"q\" * _\n"),
		"a log with all its marks": times(60<<10,
			"[INFO] --- [main] o.s.b.w.e.tomcat (TomcatWebServer.java:243) \\d+ **done** ~ok~\n"),
	} {
		if html := page(source); strings.Contains(string(html), tooComplex) {
			t.Errorf("%s of %d bytes is not formatted, want no %q in the html", name, len(source), tooComplex)
		}
	}
}

// A text that waits too long for others is shown unformatted.
func TestRendersAtOnceAreBounded(t *testing.T) {
	r := New(2, time.Millisecond)
	r.slots <- struct{}{}
	if got := r.HTML("*a*"); got != "<p><em>a</em></p>\n" {
		t.Errorf("with a slot left, *a* is %q; want %v", got, "<p><em>a</em></p>\n")
	}
	r.slots <- struct{}{}
	if got, want := r.HTML("*a*"), plain("*a*", tooBusy); got != want {
		t.Errorf("without a slot, *a* is %q, want %q", got, want)
	}
	<-r.slots
	if got := r.HTML("*a*"); got != "<p><em>a</em></p>\n" || len(r.slots) != 1 {
		t.Errorf("with a slot again, *a* is %q; %d slots are taken; want it rendered, in one slot", got, len(r.slots))
	}
}

// FuzzBoundedMarkdown searches for texts that cost more than their length allows.
func FuzzBoundedMarkdown(f *testing.F) {
	for _, source := range attacks(512) {
		f.Add(source, 1)
	}
	for _, source := range hostileMarkdown {
		f.Add(source, 300)
	}
	page("*warm*")
	f.Fuzz(func(t *testing.T, part string, count int) {
		if len(part) == 0 || count < 0 {
			return
		}
		source := strings.Repeat(part, max(min(count, (8<<10)/len(part)), 1))
		var html template.HTML
		if took := allocated(func() { html = page(source) }); took > allowedBytes(len(source)) {
			t.Fatalf("%q, %d times, %d bytes: %d bytes are allocated; %d are allowed, want no more", part, count,
				len(source), took,
				allowedBytes(len(source)))
		}
		if most := max(outputOf(len(source)), 5*len(source)) + 200; len(html) > most {
			t.Fatalf("%q, %d times: %d bytes become %d, want at most %v", part, count, len(source), len(html), most)
		}
	})
}
