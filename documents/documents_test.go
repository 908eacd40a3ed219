package documents_test

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/documents"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// trusting reads PDF files in the test's process.
var trusting = documents.New(&documents.Options{TrustPDF: true})

// read reads a document with a name, which must succeed.
func read(t *testing.T, name, mimeType string, data []byte) souvenir.DocumentText {
	t.Helper()
	text, err := trusting.ReadDocument(t.Context(), souvenir.Document{Filename: name, MIMEType: mimeType,
		Size: int64(len(data)), Content: bytes.NewReader(data)})
	if err != nil {
		t.Fatalf("%s: got error %v, want none", name, err)
	}
	return text
}

// placeOf returns the place of a word in a text.
func placeOf(t *testing.T, text souvenir.DocumentText, word string) (place string) {
	t.Helper()
	at := strings.Index(text.Text, word)
	if at < 0 {
		t.Fatalf("got the text %q, want %q in it", text.Text, word)
	}
	for _, p := range text.Places {
		if p.Start <= at {
			place = p.Name
		}
	}
	return place
}

const page = `<!doctype html><title>Runbook</title><style>p { color: red }</style><script>var hidden = 1 < 2</script>
<h1>Deploy <em>window</em></h1><p>It opens on&nbsp;Tuesday<br>at nine.<ul><li>one<li>two</ul>
<h2>值班</h2><table><tr><td>Host<td>utrecht-2</table><img src=x alt="a green light"><template>secret</template>`

const letter = "From: =?utf-8?q?J=C3=BCrgen?= <j@example.org>\r\nTo: team@example.org\r\n" +
	"Subject: =?gb2312?B?sr/K8LSwv9o=?=\r\nMIME-Version: 1.0\r\n" +
	"Content-Type: multipart/mixed; boundary=outer\r\n\r\n--outer\r\n" +
	"Content-Type: multipart/alternative; boundary=inner\r\n\r\n--inner\r\n" +
	"Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" +
	"The caf=E9 opens on Tues=\r\nday.\r\n--inner\r\nContent-Type: text/html\r\n\r\n<p>again</p>\r\n--inner--\r\n" +
	"--outer\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=\"plan.pdf\"\r\n\r\n" +
	"%PDF\r\n--outer--\r\n"

func TestEachFormatSaysWhatIsInItAndWhere(t *testing.T) {
	gbk, err := simplifiedchinese.GBK.NewEncoder().String("部署窗口在星期二上午九点打开。")
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string) string {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	const word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	for _, c := range []struct{ name, mimeType, data, want, place string }{
		{"notes.txt", "text/plain; charset=utf-8", "one\r\nthe window opens\r\n", "window opens", "line 2"},
		{"gbk.txt", "text/plain", gbk, "星期二", "line 1"},
		{"latin.txt", "text/plain", "first\ncaf\xe9 opens", "café", "line 2"},
		{"utf16.txt", "text/plain; charset=utf-16le", "\xff\xfeh\x00i\x00", "hi", "line 1"},
		{"notes.md", "text/markdown", "# Runbook\n\n```\n# no heading\n```\n## 值班 ##\ncall us", "call us", "line 7, 值班"},
		{"main.go", "text/plain; charset=utf-8", "package main\n\n// deploy opens the window\n", "deploy", "line 3"},
		{"page.html", "text/html", page, "Tuesday", "Deploy window"},
		{"page.html", "text/html", page, "utrecht-2", "值班"},
		{"page.html", "text/html", page, "a green light", "值班"},
		{"rows.csv", "text/csv", "host,role\nutrecht-1,\"main,\nfirst\"\nutrecht-2,standby\n",
			"host: utrecht-2; role: standby",
			"line 4"},
		{"rows.tsv", "text/tab-separated-values", "host\trole\na\tb\n", "host: a; role: b", "line 2"},
		{"data.json", "application/json", `{"hosts": [{"name": "a"}, {"name": "utrecht-2", "ok": true}]}`,
			"hosts[1].name: utrecht-2", "hosts[1]"},
		{"lines.jsonl", "application/jsonl", "{\"a\": 1}\n{\"a\": \"二\"}\n", "a: 二", "a"},
		{"broken.json", "application/json", `{"hosts": [oops`, "oops", "line 1"},
		{"letter.eml", "message/rfc822", letter, "Subject: 部署窗口", "headers"},
		{"letter.eml", "message/rfc822", letter, "From: Jürgen", "headers"},
		{"letter.eml", "message/rfc822", letter, "café opens on Tuesday", "part 2"},
		{"letter.eml", "message/rfc822", letter, "Attachment: plan.pdf", "part 2"},
		{"runbook.pdf", "application/pdf", file("runbook.pdf"), "standby machine", "page 2"},
		{"chinese.pdf", "application/pdf", file("chinese.pdf"), "星期二", "page 1"},
		{"runbook.docx", word, file("runbook.docx"), "restoring them", "Backups"},
		{"runbook.docx", word, file("runbook.docx"), "星期二", "值班"},
		{"runbook.docx", word, file("runbook.docx"), "utrecht-2", "值班"},
	} {
		if got := placeOf(t, read(t, c.name, c.mimeType, []byte(c.data)), c.want); got != c.place {
			t.Errorf("%s: got the place %q of %q, want %q", c.name, got, c.want, c.place)
		}
	}
	for _, hidden := range []string{"color", "var hidden", "secret"} {
		if got := read(t, "page.html", "text/html", []byte(page)).Text; strings.Contains(got, hidden) {
			t.Errorf("got %q, want no %q: it is not shown", got, hidden)
		}
	}
	if got := read(t, "letter.eml", "message/rfc822", []byte(letter)).Text; strings.Contains(got, "again") {
		t.Errorf("got %q, want one of the alternatives", got)
	}
}

func TestDocumentsWithoutTextSayWhy(t *testing.T) {
	file := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, c := range []struct {
		name, mimeType string
		data           []byte
		want           string
	}{
		{"a.png", "image/png", []byte("\x89PNG"), "files of type image/png are not read"},
		{"a.bin", "", []byte{1}, "files of an unknown type are not read"},
		{"a.txt", "text/plain", []byte("\x00\x01\x02"), "it is not text"},
		{"encrypted.pdf", "application/pdf", file("encrypted.pdf"), "it is encrypted"},
		{"scanned.pdf", "application/pdf", file("scanned.pdf"), "its pages have no text; they may be scanned"},
	} {
		if got := read(t, c.name, c.mimeType, c.data); got.Text != "" || got.Reason != c.want {
			t.Errorf("%s: got %q and the reason %q, want no text and %q", c.name, got.Text, got.Reason, c.want)
		}
	}
}

// docx returns a DOCX file with a document.
func docx(t testing.TB, document string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("word/document.xml")
	if err == nil {
		_, err = w.Write([]byte(document))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pdf returns a PDF file with one page, whose content is a stream with a filter.
func pdf(content, filter string) []byte {
	var b bytes.Buffer
	var offsets []int
	object := func(body string) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(offsets), body)
	}
	b.WriteString("%PDF-1.4\n")
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>")
	object("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents 4 0 R " +
		"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>")
	object(fmt.Sprintf("<< /Length %d %s >>\nstream\n%s\nendstream", len(content), filter, content))
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&b, "trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return b.Bytes()
}

// hostile returns harmful files, by name.
func hostile(t testing.TB) map[string]souvenir.Document {
	t.Helper()
	all := map[string]souvenir.Document{}
	add := func(name, mimeType string, data []byte) {
		all[name] = souvenir.Document{Filename: name, MIMEType: mimeType, Size: int64(len(data)),
			Content: bytes.NewReader(data)}
	}
	const word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	paragraph := "<w:p><w:r><w:t>" + strings.Repeat("bomb ", 200) + "</w:t></w:r></w:p>"
	add("bomb.docx", word, docx(t, "<w:document>"+strings.Repeat(paragraph, 80_000)))
	add("deep.docx", word, docx(t, strings.Repeat("<w:p>", 1_000_000)))
	add("entities.docx", word, docx(t, `<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><w:p><w:t>&b;</w:t></w:p>`))
	add("none.docx", word, []byte("PK\x05\x06"+strings.Repeat("\xff", 18)))
	add("deep.html", "text/html", []byte(strings.Repeat("<div><table>", 300_000)))
	add("attributes.html", "text/html", []byte("<a "+strings.Repeat("x=1 ", 1_500_000)))
	add("comment.html", "text/html", []byte("<!--"+strings.Repeat("-", 4<<20)))
	add("deep.json", "application/json", []byte(strings.Repeat("[", 4<<20)))
	add("keys.json", "application/json", []byte(strings.Repeat(`{"k":`, 900)+"1"+strings.Repeat("}", 900)))
	add("quote.csv", "text/csv", []byte("a,b\n\""+strings.Repeat("x\n", 2<<20)))
	add("columns.csv", "text/csv", []byte(strings.Repeat(",", 4<<20)))
	add("long.md", "text/markdown", []byte(strings.Repeat("#", 4<<20)+"\n"+strings.Repeat("# x\n", 1<<20)))
	nested := ""
	for i := range 5000 {
		nested += fmt.Sprintf("Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	add("nested.eml", "message/rfc822", []byte("Subject: x\r\n"+nested))
	add("parts.eml", "message/rfc822", []byte("Subject: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"+
		strings.Repeat("--b\r\nContent-Type: text/plain\r\n\r\nx\r\n", 50_000)))
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	for range 20_000 {
		_, _ = w.Write([]byte("BT /F1 12 Tf (" + strings.Repeat("bomb ", 200) + ") Tj ET\n"))
	}
	_ = w.Close()
	add("bomb.pdf", "application/pdf", pdf(packed.String(), "/Filter /FlateDecode"))
	add("brackets.pdf", "application/pdf", pdf(strings.Repeat("[", 1<<20), ""))
	loop := strings.Replace(string(pdf("BT (x) Tj ET", "")), "/Kids [3 0 R] /Count 1", "/Kids [2 0 R] /Count 9", 1)
	add("loop.pdf", "application/pdf", []byte(loop))
	own := strings.Replace(string(pdf("BT (x) Tj ET", "")), "/Parent 2", "/Parent 3", 1)
	add("parent.pdf", "application/pdf", []byte(own))
	sections := string(pdf("BT (x) Tj ET", ""))
	at := sections[strings.Index(sections, "startxref\n")+len("startxref\n"):]
	at, _, _ = strings.Cut(at, "\n")
	add("sections.pdf", "application/pdf", []byte(strings.Replace(sections, "/Root", "/Prev "+at+" /Root", 1)))
	add("none.pdf", "application/pdf", []byte("%PDF-1.7"))
	return all
}

func TestHostileFilesDoNoHarm(t *testing.T) {
	longtest.Only(t)
	for name, d := range hostile(t) {
		text, err := trusting.ReadDocument(t.Context(), d)
		if len(text.Text) > 1<<20 || len(text.Places) > 5000 || !utf8.ValidString(text.Text) {
			t.Errorf("%s: got %d bytes and %d places, want at most 1 MiB of UTF-8 and 5000", name, len(text.Text),
				len(text.Places))
		}
		t.Logf("%s: %d bytes, %d places, truncated %t, %q, %v", name, len(text.Text), len(text.Places), text.Truncated,
			text.Reason, err)
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	longtest.Only(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, d := range hostile(t) {
		if !strings.HasPrefix(name, "bomb") && name != "deep.html" {
			continue
		}
		if _, err := trusting.ReadDocument(ctx, d); err == nil {
			t.Errorf("%s: got no error, want that of the context", name)
		}
	}
}

// TestServe is the separate process of TestPDFIsReadInAProcessOfItsOwn.
func TestServe(t *testing.T) {
	if len(os.Args) < 2 || os.Args[len(os.Args)-1] != "read-document" {
		t.Skip("only in a process of its own")
	}
	if err := documents.Serve(t.Context(), os.Stdin, os.Stdout); err != nil {
		t.Fatal(err)
	}
	os.Exit(0)
}

func TestPDFIsReadInAProcessOfItsOwn(t *testing.T) {
	longtest.Only(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	apart := documents.New(&documents.Options{Command: []string{self, "-test.run=^TestServe$", "read-document"}})
	data, err := os.ReadFile("testdata/runbook.pdf")
	if err != nil {
		t.Fatal(err)
	}
	d := souvenir.Document{Filename: "runbook.pdf", MIMEType: "application/pdf", Size: int64(len(data)),
		Content: bytes.NewReader(data)}
	text, err := apart.ReadDocument(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if got := placeOf(t, text, "standby machine"); got != "page 2" {
		t.Errorf("got the place %q, want page 2", got)
	}
	for name, d := range hostile(t) {
		if !strings.HasSuffix(name, ".pdf") {
			continue
		}
		text, err := apart.ReadDocument(t.Context(), d)
		if len(text.Text) > 1<<20 {
			t.Errorf("%s: got %d bytes, want at most 1 MiB", name, len(text.Text))
		}
		t.Logf("%s: %d bytes, %v", name, len(text.Text), err)
	}
	many := bytes.Replace(pdf("BT (x) Tj ET", ""), []byte("xref\n0 "), []byte("xref\n66666666660 "), 1)
	_, err = apart.ReadDocument(t.Context(), souvenir.Document{Filename: "many.pdf", MIMEType: "application/pdf",
		Size: int64(len(many)), Content: bytes.NewReader(many)})
	if err == nil || !strings.Contains(err.Error(), "memory") {
		t.Errorf("a table of 66,666,666,660 objects: got %v, want that it takes too much memory", err)
	}
	none, err := documents.New(nil).ReadDocument(t.Context(), d)
	if err != nil || none.Text != "" || !strings.Contains(none.Reason, "PDF") {
		t.Errorf("without a process: got %q, %q, %v; want a reason about PDF", none.Text, none.Reason, err)
	}
	gone := documents.New(&documents.Options{Command: []string{filepath.Join(t.TempDir(), "none")}})
	if _, err := gone.ReadDocument(t.Context(), d); err == nil {
		t.Error("got no error of a program that does not exist, want one")
	}
}

// fuzzed reads bytes as a file of a type.
func fuzzed(f *testing.F, name, mimeType string, seeds ...[]byte) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text, _ := trusting.ReadDocument(t.Context(), souvenir.Document{Filename: name, MIMEType: mimeType,
			Size: int64(len(data)), Content: bytes.NewReader(data)})
		if !utf8.ValidString(text.Text) && utf8.Valid(data) {
			t.Errorf("got the text %q, want UTF-8", text.Text)
		}
		last := 0
		for _, p := range text.Places {
			if p.Start < last || p.Start > len(text.Text) {
				t.Fatalf("got the place %+v after %d in %d bytes, want them in order", p, last, len(text.Text))
			}
			last = p.Start
		}
	})
}

func FuzzPlain(f *testing.F) {
	fuzzed(f, "a.txt", "text/plain", []byte("one\ntwo"), []byte("\xff\xfea\x00"))
}

func FuzzMarkdown(f *testing.F) {
	fuzzed(f, "a.md", "text/markdown", []byte("# a\n```\n# b\n```\n## c"))
}

func FuzzHTML(f *testing.F) { fuzzed(f, "a.html", "text/html", []byte(page)) }

func FuzzTable(f *testing.F) { fuzzed(f, "a.csv", "text/csv", []byte("a,b\n1,\"2\n3\"\n")) }

func FuzzJSON(f *testing.F) {
	fuzzed(f, "a.json", "application/json", []byte(`{"a": [1, {"b": null}], "c": "d"} 2`))
}

func FuzzMail(f *testing.F) {
	fuzzed(f, "a.eml", "message/rfc822", []byte(letter), []byte("From: =?utf-8?q?=80?=\n\n"))
}

func FuzzDOCX(f *testing.F) {
	fuzzed(f, "a.docx", "", docx(f, `<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>a</w:t></w:r></w:p>`))
}

// There is no target for PDF: its reader can be made to allocate too much memory, which kills the process.
