package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// upload sends a form as a caller.
func upload(w *servertest.World, caller string, parts ...servertest.Part) servertest.Answer {
	w.T.Helper()
	kind, body := servertest.FormOf(w.T, parts)
	r := w.Request(caller, "POST", "/api/files/upload", bytes.NewReader(body))
	r.Header.Set("Content-Type", kind)
	return w.Send(r)
}

// gotFile is a file in an answer.
type gotFile struct {
	ID, Filename, Description, Category, SHA256 string
	MIMEType                                    string  `json:"mime_type"`
	MemoryID                                    *string `json:"memory_id"`
	ProjectID                                   string  `json:"project_id"`
	Tags                                        []string
	Size                                        int64
}

func uploadedFile(a servertest.Answer) gotFile {
	a.T.Helper()
	var changed struct{ File gotFile }
	a.Expect(http.StatusOK, `"success":true`).Decode(&changed)
	return changed.File
}

// Fields count anywhere in the form: before the file, after it, or both.
func TestUploadFieldsBeforeAndBehindTheFile(t *testing.T) {
	w := servertest.New(t, server.Options{})
	file := servertest.Part{Name: "file", Filename: "notes.md", Kind: "", Value: "# Notes\n"}
	fields := []servertest.Part{{Name: "memory_id", Value: w.Memory}, {Name: "description", Value: "what was said"},
		{Name: "tags[]", Value: "a"}, {Name: "tags[]", Value: "b"}, {Name: "category", Value: "minutes"},
		{Name: "unknown", Value: "x"}}
	for i := range len(fields) + 1 {
		form := append(append(append([]servertest.Part{}, fields[:i]...), file), fields[i:]...)
		f := uploadedFile(upload(w, servertest.Owner, form...))
		if f.Filename != "notes.md" || f.Description != "what was said" || f.Category != "minutes" ||
			strings.Join(f.Tags, " ") != "a b" ||
			f.MemoryID == nil || *f.MemoryID != w.Memory || f.ProjectID != "shop" || f.Size != 8 {
			t.Errorf("with %d fields before the file: %+v, want all fields", i, f)
		}
	}
	plain := uploadedFile(upload(w, servertest.Owner, servertest.Part{Name: "file", Filename: "plain", Kind: "",
		Value: "x"}))
	if plain.MemoryID != nil || len(plain.Tags) != 0 {
		t.Errorf("got %+v, want no memory and no tags", plain)
	}
	listed := uploadedFile(upload(w, servertest.Owner, servertest.Part{Name: "tags", Value: "a, b"},
		servertest.Part{Name: "file", Filename: "x", Kind: "", Value: "x"},
		servertest.Part{Name: "project_id", Value: "shop"}, servertest.Part{Name: "tags[]", Value: "c"}))
	if strings.Join(listed.Tags, " ") != "a b c" || listed.ProjectID != "shop" {
		t.Errorf(`got %+v, want tags "a b c" and project ID "shop"`, listed)
	}
}

// asking is a body that asks a question before it sends its rest, as if the sender had stopped there.
type asking struct {
	io.Reader
	ask func()
}

func (a *asking) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if err == io.EOF && a.ask != nil {
		a.ask()
		a.ask = nil
	}
	return n, err
}

// A file becomes visible only with the fields behind it, and then completely, even if the server is killed.
func TestAFileAppearsWithTheFieldsBehindIt(t *testing.T) {
	w := servertest.New(t, server.Options{})
	kind, body := servertest.FormOf(t, []servertest.Part{{Name: "file", Filename: "x.txt", Kind: "", Value: "x"},
		{Name: "description", Value: "what was said"}})
	half := bytes.Index(body, []byte("description"))
	before := w.FilesOf(servertest.Owner)
	asked := false
	first := &asking{bytes.NewReader(body[:half]), func() {
		asked = true
		if n := w.FilesOf(servertest.Owner); n != before {
			t.Errorf("got %d files before the description has arrived, want %d", n, before)
		}
	}}
	r := w.Request(servertest.Owner, "POST", "/api/files/upload", io.MultiReader(first, bytes.NewReader(body[half:])))
	r.Header.Set("Content-Type", kind)
	answer := httptest.NewRecorder()
	w.HTTP.Config.Handler.ServeHTTP(answer, r)
	if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "what was said") || !asked {
		t.Errorf("got status %d, %s, want the description; asked meanwhile: %v", answer.Code, answer.Body, asked)
	}
}

// A refused upload leaves nothing behind, however late it is refused.
func TestRefusedUploadsLeaveNothing(t *testing.T) {
	p := servertest.Template(t)
	w := servertest.Serve(t, p, p.Copy(t).Open(t, &souvenir.Options{MaxFile: 10 << 20}), server.Options{MaxBody: 1 << 20})
	before := w.FilesOf(servertest.Owner)
	file := servertest.Part{Name: "file", Filename: "x.bin", Kind: "", Value: strings.Repeat("\x00\x01\x02", 2<<20)}
	small := servertest.Part{Name: "file", Filename: "x.txt", Kind: "", Value: "x"}
	for i, c := range []struct {
		name   string
		caller string
		parts  []servertest.Part
		status int
		has    string
	}{
		{"no file", servertest.Owner, []servertest.Part{{Name: "category", Value: "a"}}, 400, "file is missing"},
		{"nothing", servertest.Owner, nil, 400, ""},
		{"two files", servertest.Owner, []servertest.Part{small, small}, 400, "file is given twice"},
		{"a file by another name", servertest.Owner, []servertest.Part{{Name: "document", Filename: "x.txt", Kind: "",
			Value: "x"}}, 400, `must be named \"file\"`},
		{"a memory that is not there", servertest.Owner, []servertest.Part{{Name: "memory_id", Value: "nothing"}, small}, 404,
			"memory_id"},
		{"a memory that is not there, said late", servertest.Owner, []servertest.Part{file, {Name: "memory_id",
			Value: "nothing"}}, 404,
			"memory_id"},
		{"a private memory, said late", servertest.Stranger, []servertest.Part{small, {Name: "memory_id", Value: w.Private}},
			404, "memory_id"},
		{"a memory that may only be read", servertest.Reader, []servertest.Part{{Name: "memory_id", Value: w.Memory}, small},
			403, "read-only"},
		{"a memory that may only be read, said late", servertest.Reader, []servertest.Part{small, {Name: "memory_id",
			Value: w.Memory}}, 403,
			"read-only"},
		{"a long category, said late", servertest.Owner, []servertest.Part{file, {Name: "category", Value: strings.Repeat("x",
			100)}}, 400,
			"category"},
		{"a memory twice", servertest.Owner, []servertest.Part{{Name: "memory_id", Value: w.Memory}, small,
			{Name: "memory_id", Value: w.Private}},
			400, "memory_id is given twice"},
		{"a memory and a project", servertest.Owner,
			[]servertest.Part{{Name: "memory_id", Value: w.Memory}, small, {Name: "project_id", Value: "shop"}}, 400, "project"},
		{"a field that is too long", servertest.Owner, []servertest.Part{small, {Name: "description",
			Value: strings.Repeat("x", 65<<10)}}, 400,
			"65536"},
		{"a field that is not a text", servertest.Owner, []servertest.Part{small, {Name: "description", Value: "\xff"}}, 400,
			"UTF-8"},
		{"fields without end", servertest.Owner,
			append([]servertest.Part{small}, many(100, servertest.Part{Name: "x", Value: strings.Repeat("x", 60<<10)})...), 400,
			"1048576"},
		{"fields without number", servertest.Owner, append([]servertest.Part{small}, many(5000, servertest.Part{Name: "x",
			Value: "x"})...), 400,
			"1000 fields"},
		{"a file that is too large", servertest.Owner, []servertest.Part{{Name: "file", Filename: "x.bin", Kind: "",
			Value: strings.Repeat("\x00\x01", 6<<20)}}, 400,
			"10485760"},
		{"an image that is none", servertest.Owner, []servertest.Part{{Name: "file", Filename: "x.png", Kind: "image/png",
			Value: "<script>alert(1)</script>"}}, 400,
			"image/png"},
		{"a guest", servertest.Guest, []servertest.Part{small}, 401, "credential"},
		{"a user who may only read", servertest.ReadOnly, []servertest.Part{small}, 403, "files:write"},
		{"a user without access to files", servertest.NoFiles, []servertest.Part{small}, 403, "files:write"},
	} {
		if !longtest.Part(i, 1, 4) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			upload(w, c.caller, c.parts...).Expect(c.status, c.has).Without(servertest.Secret)
			if after := w.FilesOf(servertest.Owner); after != before {
				t.Errorf("%d files, before %d, want no change", after, before)
			}
		})
	}
	for _, caller := range []string{servertest.Reader, servertest.Stranger} {
		var list struct{ Files []gotFile }
		w.Do(caller, "GET", "/api/files", "").Decode(&list)
		for _, f := range list.Files {
			if f.ID != w.File {
				t.Errorf("%s is left with %+v; want ID %v", caller, f, w.File)
			}
		}
	}
}

func many(n int, p servertest.Part) []servertest.Part {
	all := make([]servertest.Part, n)
	for i := range all {
		all[i] = p
	}
	return all
}

// A list comes in pages with a total. Invalid numbers are refused by name.
func TestFilesComeInPages(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for i := range 5 {
		upload(w, servertest.Owner, servertest.Part{Name: "file", Filename: fmt.Sprintf("%d.txt", i), Kind: "", Value: "x"},
			servertest.Part{Name: "category", Value: "page"})
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
		w.Do(servertest.Owner, "GET", "/api/files?category=page"+c.query, "").Expect(http.StatusOK, `"files":[`).Decode(&p)
		var names []string
		for _, f := range p.Files {
			names = append(names, strings.TrimSuffix(f.Filename, ".txt"))
		}
		if strings.Join(names, " ") != c.names || p.Count != len(names) || p.Total != c.total || p.Limit != c.limit ||
			p.Offset != c.start || p.HasMore != c.more {
			t.Errorf("%q: got %v, %+v; want the files %s of %d", c.query, names, p, c.names, c.total)
		}
	}
	for query, argument := range map[string]string{
		"limit=0": "limit", "limit=-1": "limit", "limit=1001": "limit", "limit=7.5": "limit", "limit=many": "limit",
		"limit=0x10": "limit", "limit=9223372036854775808": "limit",
		"offset=-1": "offset", "offset=-9223372036854775808": "offset", "offset=2147483648": "offset",
		"offset=99999999999999999999999": "offset", "offset=%00": "offset",
		"limit=1&offset=1e3": "offset", "limit=": "limit", "offset=": "offset", "limit=%2B5": "limit", "limit=007": "limit",
	} {
		w.Do(servertest.Owner, "GET", "/api/files?"+query, "").Expect(http.StatusBadRequest, argument+" is ")
	}
}

// A truncated form is refused, and nothing of it is stored.
func TestTruncatedForms(t *testing.T) {
	w := servertest.New(t, server.Options{})
	kind, body := servertest.FormOf(t, []servertest.Part{{Name: "category", Value: "a"}, {Name: "file", Filename: "x.txt",
		Kind: "", Value: strings.Repeat("text ", 100)},
		{Name: "description", Value: "said late"}})
	before := w.FilesOf(servertest.Owner)
	whole := bytes.LastIndex(body, []byte("--")) + len("--") // the line break after the last boundary may be missing
	for cut := range whole {
		if !longtest.Part(cut, 1, 21) {
			continue
		}
		r := w.Request(servertest.Owner, "POST", "/api/files/upload", bytes.NewReader(body[:cut]))
		r.Header.Set("Content-Type", kind)
		w.Send(r).Expect(http.StatusBadRequest)
		if after := w.FilesOf(servertest.Owner); after != before {
			t.Fatalf("cut at byte %d: %d files, before %d, want no change", cut, after, before)
		}
	}
	r := w.Request(servertest.Owner, "POST", "/api/files/upload", bytes.NewReader(body[:whole]))
	r.Header.Set("Content-Type", kind)
	f := uploadedFile(w.Send(r))
	w.Do(servertest.Owner, "DELETE", "/api/files/"+f.ID, "").Expect(http.StatusOK)
	for _, kind := range []string{"", "application/json", "multipart/form-data", "multipart/mixed; boundary=x",
		"multipart/form-data; boundary=other"} {
		r := w.Request(servertest.Owner, "POST", "/api/files/upload", bytes.NewReader(body))
		r.Header.Set("Content-Type", kind)
		w.Send(r).Expect(http.StatusBadRequest)
	}
	if after := w.FilesOf(servertest.Owner); after != before {
		t.Errorf("%d files, before %d, want no change", after, before)
	}
}

// A token for one project stores files there. A field late in the form cannot move a file elsewhere.
func TestUploadsOfALimitedToken(t *testing.T) {
	w := servertest.New(t, server.Options{})
	if f := uploadedFile(upload(w, servertest.Limited, servertest.Part{Name: "file", Filename: "x.txt", Kind: "",
		Value: "x"})); f.ProjectID != "shop" {
		t.Errorf("%+v; want projectID \"shop\"", f)
	}
	before := w.FilesOf(servertest.Owner)
	upload(w, servertest.Limited, servertest.Part{Name: "file", Filename: "x.txt", Kind: "", Value: "x"},
		servertest.Part{Name: "memory_id", Value: w.Private}).Expect(http.StatusNotFound).Without(servertest.Secret)
	upload(w, servertest.Limited, servertest.Part{Name: "file", Filename: "x.txt", Kind: "", Value: "x"},
		servertest.Part{Name: "project_id", Value: "plot"}).Expect(http.StatusForbidden).Without(servertest.Secret)
	if after := w.FilesOf(servertest.Owner); after != before {
		t.Errorf("%d files, before %d, want no change", after, before)
	}
}

// Filenames cannot escape their folder, and types that could run in a browser are downloaded, not displayed.
func TestDownloadsAreSafe(t *testing.T) {
	w := servertest.New(t, server.Options{})
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
			f := uploadedFile(upload(w, servertest.Owner, servertest.Part{Name: "file", Filename: c.filename, Kind: c.kind,
				Value: c.content}))
			a := w.Do(servertest.Owner, "GET", "/api/files/"+f.ID, "").Expect(http.StatusOK)
			if a.Body != c.content {
				t.Errorf("other bytes: %q, want %v", a.Body, c.content)
			}
			sum := sha256.Sum256([]byte(c.content))
			for name, value := range map[string]string{
				"Content-Type": f.MIMEType, "Content-Disposition": c.disposition, "ETag": `"` + hex.EncodeToString(sum[:]) + `"`,
				"X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-cache",
			} {
				if got := a.Header.Get(name); got != value {
					t.Errorf("%s is %q, want %q", name, got, value)
				}
			}
			if !strings.Contains(a.Header.Get("Content-Security-Policy"), "sandbox") {
				t.Errorf("Content-Security-Policy is %q, want in it \"sandbox\"", a.Header.Get("Content-Security-Policy"))
			}
		})
	}
}

func TestDownloadsNameTheEncodingOfTexts(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for _, c := range []struct{ name, kind, content, want string }{
		{"Chinese", "text/plain", "乌龙茶", "text/plain; charset=utf-8"},
		{"a character across the end of the examined part", "text/plain", "é" + strings.Repeat("x", 64<<10-3) + "乌龙",
			"text/plain; charset=utf-8"},
		{"ASCII", "text/plain", "tea", "text/plain"},
		{"a Western letter after ASCII", "text/plain", strings.Repeat("x", 64<<10-1) + "\xe9", "text/plain"},
		{"a Western letter after others", "text/plain", "\xe9" + strings.Repeat("x", 64<<10), "text/plain"},
		{"HTML that names one", "text/html", "<meta Charset=windows-1252>Ã©", "text/html"},
		{"HTML", "text/html", "<p>乌龙茶", "text/html; charset=utf-8"},
		{"an empty name of an encoding", `text/plain; charset=""`, "乌龙茶", `text/plain; charset=""`},
		{"Markdown", "text/markdown", "# Grüße", "text/markdown; charset=utf-8"},
		{"a Western encoding", "text/plain", "caf\xe9", "text/plain"},
		{"a Western encoding in the middle", "text/plain", "caf\xe9 au lait", "text/plain"},
		{"an encoding that is named", "text/plain; charset=gb18030", "\xce\xda", "text/plain; charset=gb18030"},
		{"no text", "", "\x89PNG\r\n\x1a\n", "image/png"},
		{"nothing", "text/plain", "", "text/plain"},
	} {
		f := uploadedFile(upload(w, servertest.Owner, servertest.Part{Name: "file", Filename: "x.txt", Kind: c.kind,
			Value: c.content}))
		for _, method := range []string{"GET", "HEAD"} {
			a := w.Do(servertest.Owner, method, "/api/files/"+f.ID, "").Expect(http.StatusOK)
			if got := a.Header.Get("Content-Type"); got != c.want {
				t.Errorf("%s, %s: Content-Type is %q, want %q", c.name, method, got, c.want)
			}
		}
	}
}

func TestRangesAndConditions(t *testing.T) {
	w := servertest.New(t, server.Options{})
	var content strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&content, "%08d\n", i) // 900,000 bytes: several pieces
	}
	all := content.String()
	f := uploadedFile(upload(w, servertest.Owner, servertest.Part{Name: "file", Filename: "numbers.txt", Kind: "",
		Value: all}))
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
		{"another unit", map[string]string{"Range": "lines=1-2"}, 200, all},
		{"no unit", map[string]string{"Range": "1-2"}, 200, all},
		{"the unit in capitals", map[string]string{"Range": "Bytes=0-8"}, 206, "00000000\n"},
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
			r := w.Request(servertest.Owner, "GET", "/api/files/"+f.ID, nil)
			for name, value := range c.header {
				r.Header.Set(name, value)
			}
			a := w.Send(r).Expect(c.status)
			if c.status < 400 && a.Body != c.body {
				t.Errorf("%d other bytes, want those of the file", len(a.Body))
			}
			if c.name == "behind the end" && a.Header.Get("Content-Range") != "bytes */900000" {
				t.Errorf("Content-Range is %q, want bytes */900000", a.Header.Get("Content-Range"))
			}
			if c.status >= 400 && a.Header.Get("Content-Disposition") != "" {
				t.Errorf("an error that is a download: %v, want none", a.Header)
			}
		})
	}
	r := w.Request(servertest.Owner, "HEAD", "/api/files/"+f.ID, nil)
	r.Header.Set("Range", "bytes=0-1")
	if a := w.Send(r).Expect(http.StatusOK); a.Header.Get("Content-Length") != "900000" {
		t.Errorf("HEAD with a range: Content-Length is %q, want 900000", a.Header.Get("Content-Length"))
	}
	r = w.Request(servertest.Owner, "GET", "/api/files/"+f.ID, nil)
	r.Header.Set("Range", "bytes=0-1,9-10")
	if a := w.Send(r).Expect(http.StatusPartialContent); !strings.HasPrefix(a.Header.Get("Content-Type"),
		"multipart/byteranges") || strings.Count(a.Body, "Content-Range:") != 2 {
		t.Errorf(`got %v %q, want a Content-Type that begins with "multipart/byteranges", and 2 parts`, a.Header,
			a.Body)
	}
	for _, id := range []string{w.Hidden, "nothing"} { // a condition reveals nothing about invisible files
		r := w.Request(servertest.Stranger, "GET", "/api/files/"+id, nil)
		r.Header.Set("If-None-Match", "*")
		w.Send(r).Expect(http.StatusNotFound)
	}
}

// A download whose file is deleted meanwhile breaks off, so that a part is not taken for the whole.
func TestDownloadsOfDeletedFilesBreakOff(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	f := uploadedFile(upload(w, servertest.Owner, servertest.Part{Name: "file", Filename: "large.bin", Kind: "",
		Value: strings.Repeat("\x00\x01\x02\x03", 4<<20)}))
	response, err := w.HTTP.Client().Do(w.Request(servertest.Owner, "GET", "/api/files/"+f.ID, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.ReadFull(response.Body, make([]byte, 1<<10)); err != nil {
		t.Fatal(err)
	}
	w.Do(servertest.Owner, "DELETE", "/api/files/"+f.ID, "").Expect(http.StatusOK)
	rest, err := io.Copy(io.Discard, response.Body)
	if err == nil {
		t.Errorf("the download ended well after %d bytes, want an error", rest)
	}
	w.Do(servertest.Owner, "GET", "/api/files/"+f.ID, "").Expect(http.StatusNotFound)
}
