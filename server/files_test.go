package server_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// part is a field of a form, or with a filename a file.
type part struct{ name, filename, kind, value string }

// formOf writes a form. Its end is where the content of tests of truncation is cut.
func formOf(t *testing.T, parts []part) (kind string, body []byte) {
	t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for _, p := range parts {
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", `form-data; name="`+p.name+`"`)
		if p.filename != "" {
			h.Set("Content-Disposition", `form-data; name="`+p.name+`"; filename="`+p.filename+`"`)
		}
		if p.kind != "" {
			h.Set("Content-Type", p.kind)
		}
		w, err := form.CreatePart(h)
		if err == nil {
			_, err = io.WriteString(w, p.value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	return form.FormDataContentType(), b.Bytes()
}

// upload sends a form as a caller.
func (w *world) upload(caller string, parts ...part) answer {
	w.t.Helper()
	kind, body := formOf(w.t, parts)
	r := w.request(caller, "POST", "/api/files/upload", bytes.NewReader(body))
	r.Header.Set("Content-Type", kind)
	return w.send(r)
}

// filesOf counts what there is for a caller.
func (w *world) filesOf(caller string) int {
	w.t.Helper()
	var list struct {
		Count int
		Files []struct{ ID string }
	}
	w.do(caller, "GET", "/api/files", "").expect(http.StatusOK).decode(&list)
	if len(list.Files) != list.Count {
		w.t.Errorf("count is %d for %d files", list.Count, len(list.Files))
	}
	return list.Count
}

// gotFile is a file as answers show it.
type gotFile struct {
	ID, Filename, Description, Category, SHA256 string
	MIMEType                                    string  `json:"mime_type"`
	MemoryID                                    *string `json:"memory_id"`
	ProjectID                                   string  `json:"project_id"`
	Tags                                        []string
	Size                                        int64
}

func (a answer) file() gotFile {
	a.t.Helper()
	var changed struct{ File gotFile }
	a.expect(http.StatusOK, `"success":true`).decode(&changed)
	return changed.File
}

// Fields count wherever they are in the form: before the file, behind it, or on both sides.
func TestUploadFieldsBeforeAndBehindTheFile(t *testing.T) {
	w := newWorld(t, server.Options{})
	file := part{"file", "notes.md", "", "# Notes\n"}
	fields := []part{{name: "memory_id", value: w.memory}, {name: "description", value: "what was said"},
		{name: "tags[]", value: "a"}, {name: "tags[]", value: "b"}, {name: "category", value: "minutes"},
		{name: "unknown", value: "x"}}
	for i := range len(fields) + 1 {
		form := append(append(append([]part{}, fields[:i]...), file), fields[i:]...)
		f := w.upload(owner, form...).file()
		if f.Filename != "notes.md" || f.Description != "what was said" || f.Category != "minutes" ||
			strings.Join(f.Tags, " ") != "a b" ||
			f.MemoryID == nil || *f.MemoryID != w.memory || f.ProjectID != "shop" || f.Size != 8 {
			t.Errorf("with %d fields before the file: %+v", i, f)
		}
	}
	plain := w.upload(owner, part{"file", "plain", "", "x"}).file()
	if plain.MemoryID != nil || len(plain.Tags) != 0 {
		t.Errorf("%+v", plain)
	}
	listed := w.upload(owner, part{name: "tags", value: "a, b"}, part{"file", "x", "", "x"},
		part{name: "project_id", value: "shop"}, part{name: "tags[]", value: "c"}).file()
	if strings.Join(listed.Tags, " ") != "a b c" || listed.ProjectID != "shop" {
		t.Errorf("%+v", listed)
	}
}

// Nothing is left of an upload that is refused, however late.
func TestRefusedUploadsLeaveNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "small.db")
	p, err := template()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, p.database)
	store, err := souvenir.Open(t.Context(), path, &souvenir.Options{MaxFile: 10 << 20})
	if err != nil {
		t.Fatal(err)
	}
	w := serve(t, p, store, server.Options{MaxBody: 1 << 20})
	before := w.filesOf(owner)
	file := part{"file", "x.bin", "", strings.Repeat("\x00\x01\x02", 2<<20)}
	small := part{"file", "x.txt", "", "x"}
	for _, c := range []struct {
		name   string
		caller string
		parts  []part
		status int
		has    string
	}{
		{"no file", owner, []part{{name: "category", value: "a"}}, 400, "file is missing"},
		{"nothing", owner, nil, 400, ""},
		{"two files", owner, []part{small, small}, 400, "file is given twice"},
		{"a file by another name", owner, []part{{"document", "x.txt", "", "x"}}, 400, `must be named \"file\"`},
		{"a memory that is not there", owner, []part{{name: "memory_id", value: "nothing"}, small}, 404, "memory_id"},
		{"a memory that is not there, said late", owner, []part{file, {name: "memory_id", value: "nothing"}}, 404,
			"memory_id"},
		{"a private memory, said late", stranger, []part{small, {name: "memory_id", value: w.private}}, 404, "memory_id"},
		{"a memory that may only be read", reader, []part{{name: "memory_id", value: w.memory}, small}, 403, "read-only"},
		{"a memory that may only be read, said late", reader, []part{small, {name: "memory_id", value: w.memory}}, 403,
			"read-only"},
		{"a long category, said late", owner, []part{file, {name: "category", value: strings.Repeat("x", 100)}}, 400,
			"category"},
		{"a memory twice", owner, []part{{name: "memory_id", value: w.memory}, small, {name: "memory_id", value: w.private}},
			400, "memory_id comes twice"},
		{"a memory and a project", owner,
			[]part{{name: "memory_id", value: w.memory}, small, {name: "project_id", value: "shop"}}, 400, "project"},
		{"a field that is too long", owner, []part{small, {name: "description", value: strings.Repeat("x", 65<<10)}}, 400,
			"65536"},
		{"a field that is no text", owner, []part{small, {name: "description", value: "\xff"}}, 400, "UTF-8"},
		{"fields without end", owner,
			append([]part{small}, many(100, part{name: "x", value: strings.Repeat("x", 60<<10)})...), 400, "1048576"},
		{"fields without number", owner, append([]part{small}, many(5000, part{name: "x", value: "x"})...), 400,
			"1000 fields"},
		{"a file that is too large", owner, []part{{"file", "x.bin", "", strings.Repeat("\x00\x01", 6<<20)}}, 400,
			"10485760"},
		{"an image that is none", owner, []part{{"file", "x.png", "image/png", "<script>alert(1)</script>"}}, 400,
			"image/png"},
		{"a guest", guest, []part{small}, 401, "credential"},
		{"one who may only read", readOnly, []part{small}, 403, "files:write"},
		{"one who may not have files", noFiles, []part{small}, 403, "files:write"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.upload(c.caller, c.parts...).expect(c.status, c.has).without(secret)
			if after := w.filesOf(owner); after != before {
				t.Errorf("%d files, before %d", after, before)
			}
		})
	}
	for _, caller := range []string{reader, stranger} {
		var list struct{ Files []gotFile }
		w.do(caller, "GET", "/api/files", "").decode(&list)
		for _, f := range list.Files {
			if f.ID != w.file {
				t.Errorf("%s is left with %+v; want ID %v", caller, f, w.file)
			}
		}
	}
}

func many(n int, p part) []part {
	all := make([]part, n)
	for i := range all {
		all[i] = p
	}
	return all
}

// A list comes in pages, which say how much there is; what is no number, or none that is allowed, is refused by name.
func TestFilesComeInPages(t *testing.T) {
	w := newWorld(t, server.Options{})
	for i := range 5 {
		w.upload(owner, part{"file", fmt.Sprintf("%d.txt", i), "", "x"}, part{name: "category", value: "page"})
	}
	type page struct {
		Files                       []gotFile
		Count, Total, Offset, Limit int
		HasMore                     bool `json:"has_more"`
	}
	for _, c := range []struct {
		query, names        string
		total, limit, start int
		more                bool
	}{
		{"", "4 3 2 1 0", 5, 1000, 0, false},
		{"&limit=2", "4 3", 5, 2, 0, true},
		{"&limit=2&offset=2", "2 1", 5, 2, 2, true},
		{"&limit=2&offset=4", "0", 5, 2, 4, false},
		{"&limit=1000&offset=5", "", 5, 1000, 5, false},
		{"&offset=2147483647", "", 5, 1000, 2147483647, false},
		{"&limit=1&tags=nothing", "", 0, 1, 0, false},
	} {
		var p page
		w.do(owner, "GET", "/api/files?category=page"+c.query, "").expect(http.StatusOK, `"files":[`).decode(&p)
		var names []string
		for _, f := range p.Files {
			names = append(names, strings.TrimSuffix(f.Filename, ".txt"))
		}
		if strings.Join(names, " ") != c.names || p.Count != len(names) || p.Total != c.total || p.Limit != c.limit ||
			p.Offset != c.start || p.HasMore != c.more {
			t.Errorf("%q: %v %+v", c.query, names, p)
		}
	}
	for query, argument := range map[string]string{
		"limit=0": "limit", "limit=-1": "limit", "limit=1001": "limit", "limit=7.5": "limit", "limit=many": "limit",
		"limit=0x10": "limit", "limit=9223372036854775808": "limit",
		"offset=-1": "offset", "offset=-9223372036854775808": "offset", "offset=2147483648": "offset",
		"offset=99999999999999999999999": "offset", "offset=%00": "offset",
		"limit=1&offset=1e3": "offset", "limit=": "limit", "offset=": "offset", "limit=%2B5": "limit", "limit=007": "limit",
	} {
		w.do(owner, "GET", "/api/files?"+query, "").expect(http.StatusBadRequest, argument+" is ")
	}
}

// A form that breaks off anywhere is refused, and nothing of it is stored.
func TestTruncatedForms(t *testing.T) {
	w := newWorld(t, server.Options{})
	kind, body := formOf(t, []part{{name: "category", value: "a"}, {"file", "x.txt", "", strings.Repeat("text ", 100)},
		{name: "description", value: "said late"}})
	before := w.filesOf(owner)
	whole := bytes.LastIndex(body, []byte("--")) + len("--") // the end of a line behind the last boundary may be missing
	for cut := range whole {
		if !longtest.Part(cut, 1, 7) {
			continue
		}
		r := w.request(owner, "POST", "/api/files/upload", bytes.NewReader(body[:cut]))
		r.Header.Set("Content-Type", kind)
		w.send(r).expect(http.StatusBadRequest)
		if after := w.filesOf(owner); after != before {
			t.Fatalf("cut at byte %d: %d files, before %d", cut, after, before)
		}
	}
	r := w.request(owner, "POST", "/api/files/upload", bytes.NewReader(body[:whole]))
	r.Header.Set("Content-Type", kind)
	f := w.send(r).file()
	w.do(owner, "DELETE", "/api/files/"+f.ID, "").expect(http.StatusOK)
	for _, kind := range []string{"", "application/json", "multipart/form-data", "multipart/mixed; boundary=x",
		"multipart/form-data; boundary=other"} {
		r := w.request(owner, "POST", "/api/files/upload", bytes.NewReader(body))
		r.Header.Set("Content-Type", kind)
		w.send(r).expect(http.StatusBadRequest)
	}
	if after := w.filesOf(owner); after != before {
		t.Errorf("%d files, before %d", after, before)
	}
}

// A token for one project stores there, and a file said to belong elsewhere late in the form does not get there.
func TestUploadsOfALimitedToken(t *testing.T) {
	w := newWorld(t, server.Options{})
	if f := w.upload(limited, part{"file", "x.txt", "", "x"}).file(); f.ProjectID != "shop" {
		t.Errorf("%+v; want projectID \"shop\"", f)
	}
	before := w.filesOf(owner)
	w.upload(limited, part{"file", "x.txt", "", "x"},
		part{name: "memory_id", value: w.private}).expect(http.StatusNotFound).without(secret)
	w.upload(limited, part{"file", "x.txt", "", "x"},
		part{name: "project_id", value: "plot"}).expect(http.StatusForbidden).without(secret)
	if after := w.filesOf(owner); after != before {
		t.Errorf("%d files, before %d", after, before)
	}
}

// Names cannot leave their folder, and types that could run in a browser are saved and not shown.
func TestDownloadsAreSafe(t *testing.T) {
	w := newWorld(t, server.Options{})
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 64)
	for _, c := range []struct{ filename, kind, content, disposition string }{
		{"page.html", "text/html", "<script>alert(1)</script>", "attachment; filename=page.html"},
		{"page.txt", "text/html", "<script>alert(1)</script>", "attachment; filename=page.txt"},
		{"drawing.svg", "image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`,
			"attachment; filename=drawing.svg"},
		{"feed.xml", "application/xml", `<a/>`, "attachment; filename=feed.xml"},
		{"code.js", "text/javascript", `alert(1)`, "attachment; filename=code.js"},
		{"program.exe", "", "MZ\x90\x00\x03\x00\x00\x00", "attachment; filename=program.exe"},
		{"photo.png", "image/png", png, "inline; filename=photo.png"},
		{"notes.txt", "text/plain", "notes", "inline; filename=notes.txt"},
		{"paper.pdf", "application/pdf", "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "inline; filename=paper.pdf"},
		{"../../etc/passwd", "", "root", "inline; filename=passwd"},
		{`..\\..\\boot.ini`, "", "x", "inline; filename=boot.ini"},
		{"naïve résumé.txt", "", "x", "inline; filename*=utf-8''na%C3%AFve%20r%C3%A9sum%C3%A9.txt"},
		{"a\u202etxt.exe", "", "x", "inline; filename=atxt.exe"},
	} {
		t.Run(c.filename, func(t *testing.T) {
			f := w.upload(owner, part{"file", c.filename, c.kind, c.content}).file()
			a := w.do(owner, "GET", "/api/files/"+f.ID, "").expect(http.StatusOK)
			if a.body != c.content {
				t.Errorf("other bytes: %q, want %v", a.body, c.content)
			}
			sum := sha256.Sum256([]byte(c.content))
			for name, value := range map[string]string{
				"Content-Type": f.MIMEType, "Content-Disposition": c.disposition, "ETag": `"` + hex.EncodeToString(sum[:]) + `"`,
				"X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-cache",
			} {
				if got := a.header.Get(name); got != value {
					t.Errorf("%s is %q, want %q", name, got, value)
				}
			}
			if !strings.Contains(a.header.Get("Content-Security-Policy"), "sandbox") {
				t.Errorf("Content-Security-Policy is %q, want in it \"sandbox\"", a.header.Get("Content-Security-Policy"))
			}
		})
	}
}

func TestRangesAndConditions(t *testing.T) {
	w := newWorld(t, server.Options{})
	var content strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&content, "%08d\n", i) // 900,000 bytes: several pieces
	}
	all := content.String()
	f := w.upload(owner, part{"file", "numbers.txt", "", all}).file()
	etag := `"` + f.SHA256 + `"`
	for _, c := range []struct {
		name   string
		header map[string]string
		status int
		body   string
	}{
		{"all", nil, 200, all},
		{"the beginning", map[string]string{"Range": "bytes=0-8"}, 206, "00000000\n"},
		{"across pieces", map[string]string{"Range": "bytes=262140-262149"}, 206, all[262140:262150]},
		{"the end", map[string]string{"Range": "bytes=-9"}, 206, "00099999\n"},
		{"past the end", map[string]string{"Range": "bytes=899991-2000000"}, 206, "00099999\n"},
		{"behind the end", map[string]string{"Range": "bytes=900000-"}, 416, ""},
		{"the last of nothing", map[string]string{"Range": "bytes=-0"}, 416, ""},
		{"no range", map[string]string{"Range": "bytes=9-0"}, 416, ""},
		{"another unit", map[string]string{"Range": "lines=1-2"}, 416, ""},
		{"a range of this file", map[string]string{"Range": "bytes=0-1", "If-Range": etag}, 206, "00"},
		{"a range of another", map[string]string{"Range": "bytes=0-1", "If-Range": `"other"`}, 200, all},
		{"known", map[string]string{"If-None-Match": etag}, 304, ""},
		{"known among others", map[string]string{"If-None-Match": `"a", W/` + etag}, 304, ""},
		{"not known", map[string]string{"If-None-Match": `"a"`}, 200, all},
		{"this one", map[string]string{"If-Match": etag}, 200, all},
		{"another one", map[string]string{"If-Match": `"a"`}, 412, ""},
		{"too many ranges", map[string]string{"Range": "bytes=0-899999" + strings.Repeat(",0-899999", 100)}, 200, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := w.request(owner, "GET", "/api/files/"+f.ID, nil)
			for name, value := range c.header {
				r.Header.Set(name, value)
			}
			a := w.send(r).expect(c.status)
			if c.status < 400 && a.body != c.body {
				t.Errorf("%d other bytes", len(a.body))
			}
			if c.name == "behind the end" && a.header.Get("Content-Range") != "bytes */900000" {
				t.Errorf("Content-Range is %q", a.header.Get("Content-Range"))
			}
			if c.status >= 400 && a.header.Get("Content-Disposition") != "" {
				t.Errorf("an error that is a download: %v", a.header)
			}
		})
	}
	r := w.request(owner, "GET", "/api/files/"+f.ID, nil)
	r.Header.Set("Range", "bytes=0-1,9-10")
	if a := w.send(r).expect(http.StatusPartialContent); !strings.HasPrefix(a.header.Get("Content-Type"),
		"multipart/byteranges") || strings.Count(a.body, "Content-Range:") != 2 {
		t.Errorf("%v %q", a.header, a.body)
	}
	for _, id := range []string{w.hidden, "nothing"} { // a condition tells nothing about files that cannot be seen
		r := w.request(stranger, "GET", "/api/files/"+id, nil)
		r.Header.Set("If-None-Match", "*")
		w.send(r).expect(http.StatusNotFound)
	}
}

// A download whose file is deleted meanwhile breaks off: what came is not taken for all of it.
func TestDownloadsOfDeletedFilesBreakOff(t *testing.T) {
	w := newWorld(t, server.Options{})
	f := w.upload(owner, part{"file", "large.bin", "", strings.Repeat("\x00\x01\x02\x03", 4<<20)}).file()
	response, err := w.at.Client().Do(w.request(owner, "GET", "/api/files/"+f.ID, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.ReadFull(response.Body, make([]byte, 1<<10)); err != nil {
		t.Fatal(err)
	}
	w.do(owner, "DELETE", "/api/files/"+f.ID, "").expect(http.StatusOK)
	rest, err := io.Copy(io.Discard, response.Body)
	if err == nil {
		t.Errorf("the download ended well after %d bytes", rest)
	}
	w.do(owner, "GET", "/api/files/"+f.ID, "").expect(http.StatusNotFound)
}
