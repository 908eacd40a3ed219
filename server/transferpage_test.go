package server_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// bring sends a file to the import, as the page does.
func (b *browser) bring(content string, fields ...[2]string) *gotPage {
	b.w.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	steps := firstError{}
	csrf := [2]string{"csrf", b.get("/profile").hidden().Get("csrf")}
	for _, field := range append([][2]string{csrf}, fields...) {
		steps.note(form.WriteField(field[0], field[1]))
	}
	if content != "no file" {
		part, err := form.CreateFormFile("file", "export.jsonl")
		steps.note(err)
		_, err = part.Write([]byte(content))
		steps.note(err)
	}
	steps.note(form.Close())
	if steps.err != nil {
		b.w.t.Fatal(steps.err)
	}
	r, err := http.NewRequestWithContext(b.w.t.Context(), http.MethodPost, b.w.at.URL+"/transfer/import", &body)
	if err != nil {
		b.w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Origin", b.w.at.URL)
	return b.send(r)
}

func TestExportOnThePage(t *testing.T) {
	w := newWorld(t, server.Options{})
	b, ada := w.signedIn(owner), w.signedIn(admin)
	p := b.get("/transfer").expect(http.StatusOK, "An admin can import an export").without("All users’ data",
		"credentials")
	checkPage(w, p)
	own := b.submit(p, "/transfer/export", url.Values{"files": {"yes"}, "vectors": {"yes"}}).expect(http.StatusOK, secret,
		"The shop opens at nine.", `"type":"file"`, `"type":"end"`).without(`"ada"`, "mcp_", `"type":"member"`)
	if got := own.header.Get("Content-Disposition"); !strings.HasPrefix(got, `attachment; filename="souvenir-olivia-20`) ||
		!strings.HasSuffix(got, `.jsonl"`) {
		t.Errorf("the file is called %s", got)
	}
	if got := own.header.Get("Content-Type"); got != "application/x-ndjson" {
		t.Errorf("the file is of the type %s; want \"application/x-ndjson\"", got)
	}
	b.submit(p, "/transfer/export", url.Values{"files": nil, "vectors": nil}).expect(http.StatusOK,
		secret).without(`"type":"file"`, `"type":"vectors"`)
	w.signedIn(reader).submit(p, "/transfer/export", nil).expect(http.StatusForbidden) // another's form
	rita := w.signedIn(reader)
	rita.submit(rita.get("/transfer"), "/transfer/export", nil).expect(http.StatusOK, `"type":"end"`).without(secret,
		"The shop opens at nine.")
	b.submit(p, "/transfer/export", url.Values{"of": {"all"}}).expect(http.StatusForbidden,
		"nly admins can export").without(secret)

	p = ada.get("/transfer").expect(http.StatusOK, "All users’ data")
	checkPage(w, p)
	ada.submit(p, "/transfer/export",
		url.Values{"of": {"own"}, "credentials": {"yes"}}).expect(http.StatusOK).without(secret)
	ada.submit(p, "/transfer/export", url.Values{"of": {"all"}}).expect(http.StatusOK, secret,
		"olivia").without(`"type":"token"`)
	ada.submit(p, "/transfer/export", url.Values{"of": {"all"}, "credentials": {"yes"}}).expect(http.StatusOK, secret,
		`"type":"token"`)
}

func TestImportOnThePage(t *testing.T) {
	w := newWorld(t, server.Options{})
	ada := w.signedIn(admin)
	memory := func(id, content string) string {
		return fmt.Sprintf("{\"souvenir\":\"export\",\"version\":1}\n{\"type\":\"memory\",\"id\":\"%s\",\"owner\":\"%s\","+
			"\"content\":\"%s\"}\n", id, w.users[owner], content)
	}
	begun := func(p *gotPage) *gotPage {
		t.Helper()
		if p.header.Get("Location") != "/transfer#work" {
			t.Fatalf("%d %q %s; want \"/transfer#work\"", p.status, p.header.Get("Location"), p.body)
		}
		page := ada.worked("/transfer")
		checkPage(w, page)
		return page
	}
	content := func() string {
		m, err := w.store.As(souvenir.Access{User: w.users[owner]}).GetMemory(t.Context(), "brought")
		if err != nil {
			return err.Error()
		}
		return m.Content
	}
	begun(ada.bring(memory("brought", "one"), [2]string{"look", "yes"})).expect(http.StatusOK,
		"can be imported. Nothing was imported yet.")
	if got := content(); !strings.Contains(got, "no memory") && !strings.Contains(got, "not") {
		t.Errorf("looking has brought in %q", got)
	}
	begun(ada.bring(memory("brought", "one"))).expect(http.StatusOK, "Done <time",
		`<td>memory</td><td class="numeric">1</td><td class="numeric">0</td>`)
	begun(ada.bring(memory("brought", "one"))).expect(http.StatusOK,
		`<td>memory</td><td class="numeric">0</td><td class="numeric">1</td>`)
	begun(ada.bring(memory("brought", hostileJSON))).expect(http.StatusOK, "Skipped items",
		"Line 2, memory brought")
	if got := content(); got != "one" {
		t.Errorf("it is %q, want \"one\"", got)
	}
	begun(ada.bring(memory("brought", "two"), [2]string{"conflict", "replace"})).expect(http.StatusOK,
		`<td class="numeric">1</td><td class="numeric">0</td></tr>`)
	if got := content(); got != "two" {
		t.Errorf("it is %q, want \"two\"", got)
	}
	begun(ada.bring("nothing that was exported <b>")).expect(http.StatusOK, "not an export of Souvenir", `role="alert"`)
	begun(ada.bring(memory("other", "one")+"{\"type\":\"memory\",\"id\":\""+strings.Repeat("x", 200)+
		"\"}\n")).expect(http.StatusOK, "Line 3")

	for text, p := range map[string]*gotPage{
		"File is empty": ada.bring(""), "File is missing": ada.bring("no file"),
		"allowed are keep and replace": ada.bring("x", [2]string{"conflict", "perhaps"}),
	} {
		checkPage(w, p.expect(http.StatusBadRequest, text))
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil {
		t.Error(err)
	} else {
		for _, file := range left {
			if strings.HasPrefix(file.Name(), "souvenir-import-") {
				t.Errorf("%s is left behind", file.Name())
			}
		}
	}
}

const hostileJSON = `<script>alert(1)</script>`

// One thing at a time: a second import learns what goes on, and nothing of it is left.
func TestAnImportWaitsForOtherWork(t *testing.T) {
	w := newWorld(t, server.Options{})
	ada := w.signedIn(admin)
	server.BeginWork(w.inner, httptest.NewRequestWithContext(t.Context(), "POST", "/backup/work", nil), "check", nil)
	checkPage(w, ada.get("/transfer").expect(http.StatusOK, "The check", ">Stop<"))
	w.signedIn(owner).get("/transfer").expect(http.StatusOK).without("The check")
	checkPage(w, ada.bring("{}").expect(http.StatusBadRequest, "The check has been running"))
	ada.leadsTo(ada.submit(ada.get("/transfer"), "/backup/stop", nil), "/transfer?done=stopped")
	ada.worked("/transfer").without("The check") // the other page tells how it ended
}

// Imports are for admins, and by forms of this server's pages.
func TestWhoMayImport(t *testing.T) {
	w := newWorld(t, server.Options{})
	export := "{\"souvenir\":\"export\",\"version\":1}\n{\"type\":\"memory\",\"id\":\"brought\",\"content\":\"x\"}\n"
	w.signedIn(owner).bring(export).expect(http.StatusForbidden, "for admins")
	ada := w.signedIn(admin)
	for name, origin := range map[string]string{"no field": w.at.URL, "another origin": "https://evil.example"} {
		body := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n" + export + "\r\n--x--\r\n"
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.at.URL+"/transfer/import",
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		r.Header.Set("Origin", origin)
		if p := ada.send(r); p.status != http.StatusForbidden {
			t.Errorf("%s: %d %s; want %v", name, p.status, p.body, http.StatusForbidden)
		}
	}
	if _, err := w.store.As(souvenir.Access{User: w.users[owner]}).GetMemory(t.Context(), "brought"); err == nil {
		t.Error("something was brought in")
	}
}
