package dashboard_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

func TestFilesAreListed(t *testing.T) {
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	plan := w.FileOf(servertest.Owner, souvenir.NewFile{Filename: "Plan.MD", ProjectID: "shop", Tags: []string{"year"},
		Description: "of the year"}, "# Plan")
	p := b.Get("/files").Expect(http.StatusOK, "menu.txt", `href="/files/`+plan.ID+`"`, "Markdown", "6 bytes", "The shop",
		`href="/memories/`+w.Memory+`"`, ">daily<", ">card<", "of the year", "1 to 3 of 3 files")
	servertest.CheckPage(w, p)
	for query, has := range map[string]string{
		"name=plan": "Plan.MD", "name=MENU": "menu.txt", "type=text/markdown": "Plan.MD", "type=text/*": "Plan.MD " +
			servertest.Secret +
			".txt menu.txt", "type=image/*": "", "category=card": "menu.txt", "tag=daily": "menu.txt",
		"tag=year,daily": "Plan.MD menu.txt", "project=shop": "Plan.MD menu.txt", "memory=" + w.Memory: "menu.txt",
		"name=plan&tag=daily": "", "part=2": "",
	} {
		found := b.Get("/files?" + query).Expect(http.StatusOK)
		servertest.CheckPage(w, found)
		var names []string
		for _, name := range regexp.MustCompile(
			`<bdi>([^<]*)</bdi></a>(?:<span class="meta clip"|</td>)`).FindAllStringSubmatch(found.Body, -1) {
			if strings.Contains(name[1], ".") {
				names = append(names, name[1])
			}
		}
		if strings.Join(names, " ") != has {
			t.Errorf("%s: got %v, want %v", query, names, has)
		}
	}
	servertest.CheckPage(w, b.Get("/files?type=nonsense").Expect(http.StatusBadRequest, "nonsense", "text/plain",
		`role="alert"`))
	part(b, "/files?name=plan", "files").Expect(http.StatusOK, `<div id="files">`, "Plan.MD").Without("<html", "menu.txt",
		"<form")
	// Members of the project see its files, and only those.
	w.SignedIn(servertest.Reader).Get("/files").Expect(http.StatusOK, "menu.txt", "Plan.MD",
		"by <bdi>olivia").Without(servertest.Secret)
	servertest.CheckPage(w, w.SignedIn(servertest.Stranger).Get("/files").Expect(http.StatusOK,
		"No files yet").Without("menu.txt"))
}

func TestTypesOfFilesAreNamed(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for name, text := range map[string]string{"letter.eml": "From: a@b.example\r\nSubject: x\r\n\r\nHello.\r\n",
		"prices.csv": "thing,price\ntea,2\n", "notes.md": "# Notes\n"} {
		w.FileOf(servertest.Stranger, souvenir.NewFile{Filename: name}, text)
	}
	p := w.SignedIn(servertest.Stranger).Get("/files").Expect(http.StatusOK)
	_, list, _ := strings.Cut(p.Body, `<div id="files"`)
	for _, want := range []string{"E-mail", "CSV table", "Markdown"} {
		if !strings.Contains(list, want) {
			t.Errorf("got %.2000s, want in it %q", list, want)
		}
	}
}

func TestManyFilesComeInParts(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	for i := range 60 {
		w.FileOf(servertest.Stranger, souvenir.NewFile{Filename: fmt.Sprintf("file-%02d.txt", i), Tags: []string{"many"}},
			"x")
	}
	b := w.SignedIn(servertest.Stranger)
	first := b.Get("/files?tag=many").Expect(http.StatusOK, "1 to 50 of 60 files", "file-59",
		`href="/files?part=2&amp;tag=many"`).Without("file-09", "Newer")
	servertest.CheckPage(w, first)
	second := b.Get("/files?part=2&tag=many").Expect(http.StatusOK, "51 to 60 of 60 files", "file-09",
		`href="/files?tag=many"`).Without("file-10", "Older")
	servertest.CheckPage(w, second)
	servertest.CheckPage(w, b.Get("/files?part=999999999999999999").Expect(http.StatusOK))
	servertest.CheckPage(w, b.Get("/files?part=9999999999").Expect(http.StatusOK, "Nothing is left on this page"))
}

// sendForm sends the page's form with files, as a browser without scripts does.
func sendForm(b *servertest.Browser, parts ...servertest.Part) *servertest.Page {
	b.W.T.Helper()
	kind, body := servertest.FormOf(b.W.T, parts)
	r := b.W.Request(servertest.Guest, http.MethodPost, "/files", bytes.NewReader(body))
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Origin", b.W.HTTP.URL)
	return b.Send(r)
}

func TestUploadOnThePageWithoutScripts(t *testing.T) {
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	csrf := servertest.Part{Name: "csrf", Value: b.Get("/files").HTML.All("form")[0].Fields().Get("csrf")}
	fields := []servertest.Part{{Name: "project_id", Value: "shop"}, {Name: "tags", Value: "a, b"}, {Name: "category",
		Value: "c"}}
	one := sendForm(b, append([]servertest.Part{csrf}, append(fields, servertest.Part{Name: "file", Filename: "one.txt",
		Kind: "text/plain", Value: "first"})...)...)
	at := one.Header.Get("Location")
	b.LeadsTo(one, at).Expect(http.StatusOK, "File uploaded.", "one.txt", "first", "The shop", ">a<", ">b<")
	b.LeadsTo(sendForm(b, append([]servertest.Part{csrf}, servertest.Part{Name: "file", Filename: "two.txt", Kind: "",
		Value: "2"},
		servertest.Part{Name: "file", Filename: "", Kind: "application/octet-stream", Value: ""},
		servertest.Part{Name: "file", Filename: "three.txt", Kind: "", Value: "3"})...), "/files?done=files").
		Expect(http.StatusOK, "Files uploaded.", "two.txt", "three.txt")
	before := w.FilesOf(servertest.Owner)
	servertest.CheckPage(w, sendForm(b, csrf, servertest.Part{Name: "file", Filename: "", Kind: "application/octet-stream",
		Value: ""}).Expect(http.StatusBadRequest,
		"No file was chosen"))
	servertest.CheckPage(w, sendForm(b, csrf, servertest.Part{Name: "file", Filename: "good.txt", Kind: "", Value: "4"},
		servertest.Part{Name: "file", Filename: "bad.png", Kind: "image/png",
			Value: "%PDF-1.7"}).Expect(http.StatusBadRequest, "Stored before that: good.txt",
		`role="alert"`))
	if after := w.FilesOf(servertest.Owner); after != before+1 {
		t.Errorf("%d files, and %d before; want %v", after, before, before+1)
	}
	// Nothing is stored before the hidden field is checked.
	other := servertest.Part{Name: "csrf",
		Value: w.SignedIn(servertest.Stranger).Get("/files").HTML.All("form")[0].Fields().Get("csrf")}
	for _, parts := range [][]servertest.Part{{{Name: "file", Filename: "x.txt", Kind: "", Value: "x"}}, {other,
		{Name: "file", Filename: "x.txt", Kind: "", Value: "x"}},
		{{Name: "file", Filename: "x.txt", Kind: "", Value: "x"}, csrf}, {}} {
		if p := sendForm(b, parts...); p.Status != http.StatusForbidden && p.Status != http.StatusBadRequest {
			t.Errorf("%v: got %d, want %v or %v", parts, p.Status, http.StatusForbidden, http.StatusBadRequest)
		}
	}
	kind, body := servertest.FormOf(t, []servertest.Part{csrf, {Name: "file", Filename: "x.txt", Kind: "", Value: "x"}})
	r := w.Request(servertest.Guest, http.MethodPost, "/files", bytes.NewReader(body))
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Origin", "https://evil.example")
	b.Send(r).Expect(http.StatusForbidden)
	if after := w.FilesOf(servertest.Owner); after != before+1 {
		t.Errorf("%d files after forms of others, want %v", after, before+1)
	}
}

func TestUploadsOnThePageThatAreTooLarge(t *testing.T) {
	longtest.Only(t)
	store := servertest.Empty(t).Open(t, &souvenir.Options{MaxFile: 1000})
	u, err := store.Accounts().AddUser(t.Context(), souvenir.NewUser{Name: "sam"})
	if err != nil {
		t.Fatal(err)
	}
	w := servertest.Serve(t, servertest.Plan{Users: map[string]string{servertest.Stranger: u.ID}}, store, server.Options{})
	b := w.SignedIn(servertest.Stranger)
	p := b.Get("/files").Expect(http.StatusOK, `data-most="1000"`, "Up to 1,000 bytes each")
	csrf := servertest.Part{Name: "csrf", Value: p.HTML.All("form")[0].Fields().Get("csrf")}
	servertest.CheckPage(w, sendForm(b, csrf, servertest.Part{Name: "file", Filename: "x.txt", Kind: "",
		Value: strings.Repeat("x", 1001)}).Expect(http.StatusBadRequest,
		`role="alert"`, "1,000"))
}

const pngOfOnePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func TestPreviewsRunNothing(t *testing.T) {
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Stranger)
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
		f := w.FileOf(servertest.Stranger, c.n, c.content)
		p := b.Get("/files/"+f.ID).Expect(http.StatusOK, c.has...).Without(script, c.without)
		if t.Failed() {
			t.Fatalf("%s: got the failures above, want none", name)
		}
		servertest.CheckPage(w, p)
	}
}

func TestFilesAreChangedLinkedAndDeleted(t *testing.T) {
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	f := w.FileOf(servertest.Owner, souvenir.NewFile{Filename: "old.txt", Tags: []string{"x"}}, "text")
	at := "/files/" + f.ID
	edit := at + "/edit"
	typed := url.Values{"filename": {"new.txt"}, "description": {"what it is"}, "category": {"paper"}, "tags": {"a, b , "},
		"project": {"shop"}}
	done := b.Submit(b.Get(at), edit, typed)
	step := done.GoesTo(at).Get("undo")
	page := b.Get(at+"?undo="+step).Expect(http.StatusOK, "new.txt is changed.", "what it is", ">paper<", ">a<", ">b<",
		"The shop", "Undo")
	servertest.CheckPage(w, page)
	b.Submit(page, "/undo", nil)
	b.Get(at).Expect(http.StatusOK, "old.txt", ">x<").Without("what it is", ">paper<", `href="/projects/`+
		w.Users[servertest.Owner]+
		`/shop"`)
	step = b.Submit(b.Get(at), edit, url.Values{"category": {"first"}}).GoesTo(at).Get("undo")
	former := b.Get(at + "?undo=" + step)
	b.Submit(b.Get(at), edit, url.Values{"category": {"second"}}).GoesTo(at)
	b.Submit(former, "/undo", nil).Expect(http.StatusConflict, "has been changed since")
	wrong := b.Submit(b.Get(at), edit, url.Values{"category": {strings.Repeat("x", 100)}, "description": {"kept"}})
	servertest.CheckPage(w, wrong.Expect(http.StatusBadRequest, `aria-invalid="true"`, `value="kept"`, "Category"))

	// To a memory, which is found by its words or id.
	part(b, at+"?find=when+does+the+shop+open", "found").Expect(http.StatusOK, "opens at nine", `value="`+w.Memory+
		`"`).Without("<html")
	found := b.Get(at+"?find="+w.Memory).Expect(http.StatusOK, "opens at nine")
	servertest.CheckPage(w, found)
	b.Get(at + "?find=xyzzyx").Expect(http.StatusOK)
	var linked *servertest.Page
	for _, form := range found.HTML.All("form") {
		if fields := form.Fields(); form.Attr("action") == at+"/link" && fields.Get("memory_id") == w.Memory {
			linked = b.Post(at+"/link", fields)
		}
	}
	if linked == nil {
		t.Fatal("got no form that links the file, want one")
	}
	step = linked.GoesTo(at).Get("undo")
	with := b.Get(at+"?undo="+step).Expect(http.StatusOK, "is linked to the memory", "opens at nine", "Unlink", "The shop")
	servertest.CheckPage(w, with)
	b.Submit(with, at+"/link", url.Values{"memory_id": {""}}).GoesTo(at)
	b.Get(at).Expect(http.StatusOK, "Not linked to a memory")
	servertest.CheckPage(w, b.Submit(b.Get(at+"?find="+w.Memory), at+"/link",
		url.Values{"memory_id": {"nowhere"}}).Expect(http.StatusNotFound, "nowhere"))

	b.Get(at).Expect(http.StatusOK, "It stays in the trash until").Without("gone for good", "This cannot be")
	gone := b.Get(b.Submit(b.Get(at), at+"/delete", nil).Header.Get("Location")).Expect(http.StatusOK,
		"old.txt” is deleted.", "Undo").Without(at)
	undo(b, gone).Expect(http.StatusOK, "Undone.", "old.txt")
	b.Submit(b.Get(at), at+"/delete", nil)
	b.Get(at).Expect(http.StatusNotFound)
}

// A user who may only read sees no form, and cannot do what a form would do. Files of others reveal nothing.
func TestFilesOfOthers(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	at := "/files/" + w.File
	for caller, sees := range map[string]int{servertest.Owner: 200, servertest.Writer: 200, servertest.Reader: 200,
		servertest.Stranger: 404, servertest.Admin: 404} {
		b := w.SignedIn(caller)
		p := b.Get(at).Expect(sees)
		writes := caller == servertest.Owner || caller == servertest.Writer
		if has := strings.Contains(p.Body, at+"/edit"); has != writes {
			t.Errorf("%s has a form: %v, want %v", caller, has, writes)
		}
		csrf := url.Values{"csrf": {b.Get("/profile").HTML.All("form")[0].Fields().Get("csrf")}, "filename": {"by " + caller}}
		status := map[bool]int{true: http.StatusSeeOther, false: http.StatusForbidden}[writes]
		if sees == http.StatusNotFound {
			status = sees
		}
		b.Post(at+"/edit", csrf).Expect(status)
		b.Post(at+"/link", csrf).Expect(status)
		if !writes {
			b.Post(at+"/delete", csrf)
		}
	}
	w.SignedIn(servertest.Owner).Get(at).Expect(http.StatusOK)
	w.SignedIn(servertest.Stranger).Get("/files/" + w.Hidden).Expect(http.StatusNotFound).Without(servertest.Secret)
}
