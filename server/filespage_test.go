package server_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// furnishFiles gives the pages something to show.
func (w *world) furnishFiles(paths map[string]string) {
	w.t.Helper()
	ada := w.store.As(souvenir.Access{User: w.users[admin]})
	f, err := ada.AddFile(w.t.Context(),
		souvenir.NewFile{Filename: "hostile.md", Description: hostile, Category: hostile[:60], Tags: []string{hostile[:60]},
			ProjectID: "p"},
		strings.NewReader("# "+hostile+"\n\n[x](javascript:alert(1))\n"))
	if err != nil {
		w.t.Fatal(err)
	}
	paths["/files/{id}"] = "/files/" + f.ID
}

// fileOf stores a file of someone.
func (w *world) fileOf(caller string, n souvenir.NewFile, content string) souvenir.File {
	w.t.Helper()
	f, err := w.store.As(souvenir.Access{User: w.users[caller]}).AddFile(w.t.Context(), n, strings.NewReader(content))
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

func TestFilesAreListed(t *testing.T) {
	w := newWorld(t, server.Options{})
	b := w.signedIn(owner)
	plan := w.fileOf(owner, souvenir.NewFile{Filename: "Plan.MD", ProjectID: "shop", Tags: []string{"year"},
		Description: "of the year"}, "# Plan")
	p := b.get("/files").expect(http.StatusOK, "menu.txt", `href="/files/`+plan.ID+`"`, "Markdown", "6 bytes", "The shop",
		`href="/memories/`+w.memory+`"`, ">daily<", ">card<", "of the year", "1 to 3 of 3 files")
	checkPage(w, p)
	for query, has := range map[string]string{
		"name=plan": "Plan.MD", "name=MENU": "menu.txt", "type=text/markdown": "Plan.MD", "type=text/*": "Plan.MD " + secret +
			".txt menu.txt", "type=image/*": "", "category=card": "menu.txt", "tag=daily": "menu.txt",
		"tag=year,daily": "Plan.MD menu.txt", "project=shop": "Plan.MD menu.txt", "memory=" + w.memory: "menu.txt",
		"name=plan&tag=daily": "", "part=2": "",
	} {
		found := b.get("/files?" + query).expect(http.StatusOK)
		checkPage(w, found)
		var names []string
		for _, name := range regexp.MustCompile(
			`<bdi>([^<]*)</bdi></a>(?:<span class="meta clip"|</td>)`).FindAllStringSubmatch(found.body, -1) {
			if strings.Contains(name[1], ".") {
				names = append(names, name[1])
			}
		}
		if strings.Join(names, " ") != has {
			t.Errorf("%s: %v", query, names)
		}
	}
	checkPage(w, b.get("/files?type=nonsense").expect(http.StatusBadRequest, "nonsense", "text/plain", `role="alert"`))
	b.part("/files?name=plan", "files").expect(http.StatusOK, `<div id="files">`, "Plan.MD").without("<html", "menu.txt",
		"<form")
	// Who shares the project sees what lies in it, and no one what does not.
	w.signedIn(reader).get("/files").expect(http.StatusOK, "menu.txt", "Plan.MD", "by <bdi>olivia").without(secret)
	checkPage(w, w.signedIn(stranger).get("/files").expect(http.StatusOK, "No files yet").without("menu.txt"))
}

func TestManyFilesComeInParts(t *testing.T) {
	w := newWorld(t, server.Options{})
	for i := range 60 {
		w.fileOf(stranger, souvenir.NewFile{Filename: fmt.Sprintf("file-%02d.txt", i), Tags: []string{"many"}}, "x")
	}
	b := w.signedIn(stranger)
	first := b.get("/files?tag=many").expect(http.StatusOK, "1 to 50 of 60 files", "file-59",
		`href="/files?part=2&amp;tag=many"`).without("file-09", "Newer")
	checkPage(w, first)
	second := b.get("/files?part=2&tag=many").expect(http.StatusOK, "51 to 60 of 60 files", "file-09",
		`href="/files?tag=many"`).without("file-10", "Older")
	checkPage(w, second)
	checkPage(w, b.get("/files?part=999999999999999999").expect(http.StatusOK))
	checkPage(w, b.get("/files?part=9999999999").expect(http.StatusOK, "Nothing is left on this page"))
}

// sendForm sends the form of the page with files, as a browser without scripts does.
func (b *browser) sendForm(parts ...part) *gotPage {
	b.w.t.Helper()
	kind, body := formOf(b.w.t, parts)
	r := b.w.request(guest, http.MethodPost, "/files", bytes.NewReader(body))
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Origin", b.w.at.URL)
	return b.send(r)
}

func TestUploadOnThePageWithoutScripts(t *testing.T) {
	w := newWorld(t, server.Options{})
	b := w.signedIn(owner)
	csrf := part{name: "csrf", value: b.get("/files").html.all("form")[0].fields().Get("csrf")}
	fields := []part{{name: "project_id", value: "shop"}, {name: "tags", value: "a, b"}, {name: "category", value: "c"}}
	one := b.sendForm(append([]part{csrf}, append(fields, part{"file", "one.txt", "text/plain", "first"})...)...)
	at := one.header.Get("Location")
	b.leadsTo(one, at).expect(http.StatusOK, "File uploaded.", "one.txt", "first", "The shop", ">a<", ">b<")
	b.leadsTo(b.sendForm(append([]part{csrf}, part{"file", "two.txt", "", "2"},
		part{"file", "", "application/octet-stream", ""}, part{"file", "three.txt", "", "3"})...), "/files?done=files").
		expect(http.StatusOK, "Files uploaded.", "two.txt", "three.txt")
	before := w.filesOf(owner)
	checkPage(w, b.sendForm(csrf, part{"file", "", "application/octet-stream", ""}).expect(http.StatusBadRequest,
		"No file was chosen"))
	checkPage(w, b.sendForm(csrf, part{"file", "good.txt", "", "4"},
		part{"file", "bad.png", "image/png", "%PDF-1.7"}).expect(http.StatusBadRequest, "Stored before that: good.txt",
		`role="alert"`))
	if after := w.filesOf(owner); after != before+1 {
		t.Errorf("%d files, and %d before; want %v", after, before, before+1)
	}
	// Nothing is stored before the hidden field is right.
	other := part{name: "csrf", value: w.signedIn(stranger).get("/files").html.all("form")[0].fields().Get("csrf")}
	for _, parts := range [][]part{{{"file", "x.txt", "", "x"}}, {other, {"file", "x.txt", "", "x"}},
		{{"file", "x.txt", "", "x"}, csrf}, {}} {
		if p := b.sendForm(parts...); p.status != http.StatusForbidden && p.status != http.StatusBadRequest {
			t.Errorf("%v: %d", parts, p.status)
		}
	}
	kind, body := formOf(t, []part{csrf, {"file", "x.txt", "", "x"}})
	r := w.request(guest, http.MethodPost, "/files", bytes.NewReader(body))
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Origin", "https://evil.example")
	b.send(r).expect(http.StatusForbidden)
	if after := w.filesOf(owner); after != before+1 {
		t.Errorf("%d files after forms of others, want %v", after, before+1)
	}
}

func TestUploadsOnThePageThatAreTooLarge(t *testing.T) {
	store, err := souvenir.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), &souvenir.Options{MaxFile: 1000})
	if err != nil {
		t.Fatal(err)
	}
	u, err := store.Accounts().AddUser(t.Context(), souvenir.NewUser{Name: "sam"})
	if err != nil {
		t.Fatal(err)
	}
	w := serve(t, plan{users: map[string]string{stranger: u.ID}}, store, server.Options{})
	b := w.signedIn(stranger)
	p := b.get("/files").expect(http.StatusOK, `data-most="1000"`, "Up to 1,000 bytes each")
	csrf := part{name: "csrf", value: p.html.all("form")[0].fields().Get("csrf")}
	checkPage(w, b.sendForm(csrf, part{"file", "x.txt", "", strings.Repeat("x", 1001)}).expect(http.StatusBadRequest,
		`role="alert"`, "1,000"))
}

const pngOfOnePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func TestPreviewsRunNothing(t *testing.T) {
	w := newWorld(t, server.Options{})
	b := w.signedIn(stranger)
	png, err := base64.StdEncoding.DecodeString(pngOfOnePixel)
	if err != nil {
		t.Fatal(err)
	}
	script := `<script>alert("1")</script>`
	escaped := `&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;`
	for name, c := range map[string]struct {
		n       souvenir.NewFile
		content string
		has     []string
		without string
	}{
		"an image": {souvenir.NewFile{Filename: "a.png"}, string(png), []string{`<img src="/api/files/`}, "<pre"},
		"a page": {souvenir.NewFile{Filename: "a.html", MIMEType: "text/html"}, "<html>" + script,
			[]string{escaped}, "<img"},
		"a drawing": {souvenir.NewFile{Filename: "a.svg", MIMEType: "image/svg+xml"},
			`<svg xmlns="http://www.w3.org/2000/svg">` + script + `</svg>`, []string{escaped}, "<img"},
		"a text": {souvenir.NewFile{Filename: "a.txt"}, script, []string{escaped}, "<img"},
		"a note": {souvenir.NewFile{Filename: "a.md"}, "# Head\n\n" + script, []string{">Head</h", escaped},
			"<img"},
		"a table": {souvenir.NewFile{Filename: "a.csv"}, "name,size\n" + `"<script>alert(""1"")</script>",2`,
			[]string{"<td>" + escaped + "</td>"}, "<pre"},
		"JSON": {souvenir.NewFile{Filename: "a.json"}, `{"a": 1}`, []string{"{&#34;a&#34;: 1}"}, "<img"},
		"a PDF": {souvenir.NewFile{Filename: "a.pdf"}, "%PDF-1.7\n" + script,
			[]string{"have no preview", "Download"}, "<embed"},
		"bytes": {souvenir.NewFile{Filename: "a.bin"}, "\x00\x01\x02", []string{"have no preview"}, "<pre"},
		"a text that is no": {souvenir.NewFile{Filename: "a.txt", MIMEType: "text/plain"}, "\xff\xfe\x00",
			[]string{"have no preview"}, "<pre"},
		"an empty one": {souvenir.NewFile{Filename: "e.txt"}, "", []string{"0 bytes"}, "<pre"},
		"a long one": {souvenir.NewFile{Filename: "l.txt"}, strings.Repeat("<", 200_000),
			[]string{"Only the beginning is shown"}, "<img"},
		"a long one of others": {souvenir.NewFile{Filename: "k.txt"}, strings.Repeat("€", 100_000),
			[]string{"Only the beginning is shown", "€€€"}, "\uFFFD"},
	} {
		f := w.fileOf(stranger, c.n, c.content)
		p := b.get("/files/"+f.ID).expect(http.StatusOK, c.has...).without(script, c.without)
		if t.Failed() {
			t.Fatal(name)
		}
		checkPage(w, p)
	}
}

func TestFilesAreChangedLinkedAndDeleted(t *testing.T) {
	w := newWorld(t, server.Options{})
	b := w.signedIn(owner)
	f := w.fileOf(owner, souvenir.NewFile{Filename: "old.txt", Tags: []string{"x"}}, "text")
	at := "/files/" + f.ID
	edit := at + "/edit"
	typed := url.Values{"filename": {"new.txt"}, "description": {"what it is"}, "category": {"paper"}, "tags": {"a, b , "},
		"project": {"shop"}}
	done := b.submit(b.get(at), edit, typed)
	step := done.goesTo(at).Get("undo")
	page := b.get(at+"?undo="+step).expect(http.StatusOK, "new.txt is changed.", "what it is", ">paper<", ">a<", ">b<",
		"The shop", "Undo")
	checkPage(w, page)
	b.submit(page, "/undo", nil)
	b.get(at).expect(http.StatusOK, "old.txt", ">x<").without("what it is", ">paper<", `href="/projects/`+w.users[owner]+
		`/shop"`)
	step = b.submit(b.get(at), edit, url.Values{"category": {"first"}}).goesTo(at).Get("undo")
	former := b.get(at + "?undo=" + step)
	b.submit(b.get(at), edit, url.Values{"category": {"second"}}).goesTo(at)
	b.submit(former, "/undo", nil).expect(http.StatusConflict, "has been changed since")
	wrong := b.submit(b.get(at), edit, url.Values{"category": {strings.Repeat("x", 100)}, "description": {"kept"}})
	checkPage(w, wrong.expect(http.StatusBadRequest, `aria-invalid="true"`, `value="kept"`, "Category"))

	// To a memory, which is found by words or by its id.
	b.part(at+"?find=when+does+the+shop+open", "found").expect(http.StatusOK, "opens at nine", `value="`+w.memory+
		`"`).without("<html")
	found := b.get(at+"?find="+w.memory).expect(http.StatusOK, "opens at nine")
	checkPage(w, found)
	b.get(at + "?find=xyzzyx").expect(http.StatusOK)
	var linked *gotPage
	for _, form := range found.html.all("form") {
		if fields := form.fields(); form.attr("action") == at+"/link" && fields.Get("memory_id") == w.memory {
			linked = b.post(at+"/link", fields)
		}
	}
	if linked == nil {
		t.Fatal("no form links the file")
	}
	step = linked.goesTo(at).Get("undo")
	with := b.get(at+"?undo="+step).expect(http.StatusOK, "is linked to the memory", "opens at nine", "Unlink", "The shop")
	checkPage(w, with)
	b.submit(with, at+"/link", url.Values{"memory_id": {""}}).goesTo(at)
	b.get(at).expect(http.StatusOK, "Not linked to a memory")
	checkPage(w, b.submit(b.get(at+"?find="+w.memory), at+"/link",
		url.Values{"memory_id": {"nowhere"}}).expect(http.StatusNotFound, "nowhere"))

	b.get(at).expect(http.StatusOK, "It stays in the trash until").without("gone for good", "This cannot be")
	b.leadsTo(b.submit(b.get(at), at+"/delete", nil), "/files?done=file-trashed").expect(http.StatusOK,
		"File deleted.").without("old.txt")
	b.get(at).expect(http.StatusNotFound)
}

// Who may only read sees no form, and is refused what a form would do; of what is not theirs no one learns anything.
func TestFilesOfOthers(t *testing.T) {
	w := newWorld(t, server.Options{})
	at := "/files/" + w.file
	for caller, sees := range map[string]int{owner: 200, writer: 200, reader: 200, stranger: 404, admin: 404} {
		b := w.signedIn(caller)
		p := b.get(at).expect(sees)
		writes := caller == owner || caller == writer
		if has := strings.Contains(p.body, at+"/edit"); has != writes {
			t.Errorf("%s has a form: %v, want %v", caller, has, writes)
		}
		csrf := url.Values{"csrf": {b.get("/profile").html.all("form")[0].fields().Get("csrf")}, "filename": {"by " + caller}}
		status := map[bool]int{true: http.StatusSeeOther, false: http.StatusForbidden}[writes]
		if sees == http.StatusNotFound {
			status = sees
		}
		b.post(at+"/edit", csrf).expect(status)
		b.post(at+"/link", csrf).expect(status)
		if !writes {
			b.post(at+"/delete", csrf)
		}
	}
	w.signedIn(owner).get(at).expect(http.StatusOK)
	w.signedIn(stranger).get("/files/" + w.hidden).expect(http.StatusNotFound).without(secret)
}
