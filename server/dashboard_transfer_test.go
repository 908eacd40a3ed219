package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/records/receipt"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// bring sends a file to the import, as the page does.
func bring(b *servertest.Browser, content string, fields ...[2]string) *servertest.Page {
	b.W.T.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	steps := servertest.FirstError{}
	csrf := [2]string{"csrf", b.Get("/profile").Hidden().Get("csrf")}
	for _, field := range append([][2]string{csrf}, fields...) {
		steps.Note(form.WriteField(field[0], field[1]))
	}
	if content != "no file" {
		part, err := form.CreateFormFile("file", "export.jsonl")
		steps.Note(err)
		_, err = part.Write([]byte(content))
		steps.Note(err)
	}
	steps.Note(form.Close())
	if steps.Err != nil {
		b.W.T.Fatalf("got %v, want nil", steps.Err)
	}
	r, err := http.NewRequestWithContext(b.W.T.Context(), http.MethodPost, b.W.HTTP.URL+"/transfer/import", &body)
	if err != nil {
		b.W.T.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Origin", b.W.HTTP.URL)
	return b.Send(r)
}

func TestExportOnThePage(t *testing.T) {
	w := servertest.New(t, server.Options{})
	b, ada := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Admin)
	p := b.Get("/transfer").Expect(http.StatusOK, "An admin can import an export").Without("All users’ data",
		"credentials")
	servertest.CheckPage(w, p)
	own := b.Submit(p, "/transfer/export", url.Values{"files": {"yes"}, "vectors": {"yes"}}).Expect(http.StatusOK,
		servertest.Secret,
		"The shop opens at nine.", `"type":"file"`, `"type":"end"`).Without(`"ada"`, "mcp_", `"type":"member"`)
	if got := own.Header.Get("Content-Disposition"); !strings.HasPrefix(got, `attachment; filename="souvenir-olivia-20`) ||
		!strings.HasSuffix(got, `.jsonl"`) {
		t.Errorf(`the file is called %s, want attachment; filename="souvenir-olivia-20 at the beginning of it and .jsonl" `+
			"at the end of it", got)
	}
	if got := own.Header.Get("Content-Type"); got != "application/x-ndjson" {
		t.Errorf("the file is of the type %s; want \"application/x-ndjson\"", got)
	}
	b.Submit(p, "/transfer/export", url.Values{"files": nil, "vectors": nil}).Expect(http.StatusOK,
		servertest.Secret).Without(`"type":"file"`, `"type":"vectors"`)
	w.SignedIn(servertest.Reader).Submit(p, "/transfer/export", nil).Expect(http.StatusForbidden) // of another user
	rita := w.SignedIn(servertest.Reader)
	rita.Submit(rita.Get("/transfer"), "/transfer/export", nil).Expect(http.StatusOK,
		`"type":"end"`).Without(servertest.Secret,
		"The shop opens at nine.")
	b.Submit(p, "/transfer/export", url.Values{"of": {"all"}}).Expect(http.StatusForbidden,
		"nly admins can export").Without(servertest.Secret)

	p = ada.Get("/transfer").Expect(http.StatusOK, "All users’ data")
	servertest.CheckPage(w, p)
	ada.Submit(p, "/transfer/export",
		url.Values{"of": {"own"}, "credentials": {"yes"}}).Expect(http.StatusOK).Without(servertest.Secret)
	ada.Submit(p, "/transfer/export", url.Values{"of": {"all"}}).Expect(http.StatusOK, servertest.Secret,
		"olivia").Without(`"type":"token"`)
	ada.Submit(p, "/transfer/export", url.Values{"of": {"all"}, "credentials": {"yes"}}).Expect(http.StatusOK,
		servertest.Secret,
		`"type":"token"`)
}

// The archive has the export and its valid receipt.
func TestExportWithAReceiptOnThePage(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	sent := b.Submit(b.Get("/transfer"), "/transfer/export", url.Values{"receipt": {"yes"}}).Expect(http.StatusOK)
	if got := sent.Header.Get("Content-Type"); got != "application/zip" {
		t.Errorf("the archive is of the type %s, want application/zip", got)
	}
	archive, err := zip.NewReader(strings.NewReader(sent.Body), int64(len(sent.Body)))
	if err != nil || len(archive.File) != 2 {
		t.Fatalf("the archive: %v, %d files; want 2", err, len(archive.File))
	}
	content := func(f *zip.File) []byte {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		all, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	export, proof := content(archive.File[0]), content(archive.File[1])
	opened, err := receipt.Parse(proof)
	if err != nil || !opened.Valid || !opened.Same {
		t.Fatalf("the receipt is %+v, %v, want a valid one", opened, err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(export)); opened.Claims.SHA256 != sum ||
		opened.Claims.User != w.Users[servertest.Owner] || opened.Claims.Kind != "export" {
		t.Errorf("the receipt is %+v, want one of olivia's export with the hash %s", opened.Claims, sum)
	}
	if !bytes.Contains(export, []byte("The shop opens at nine.")) || bytes.Contains(export, []byte("mcp_")) {
		t.Errorf("the export is %.200s, want one with olivia's memories and without tokens", export)
	}
}

func TestImportOnThePage(t *testing.T) {
	w := servertest.New(t, server.Options{})
	ada := w.SignedIn(servertest.Admin)
	memory := func(id, content string) string {
		return fmt.Sprintf("{\"souvenir\":\"export\",\"version\":1}\n{\"type\":\"memory\",\"id\":\"%s\",\"owner\":\"%s\","+
			"\"content\":\"%s\"}\n", id, w.Users[servertest.Owner], content)
	}
	begun := func(p *servertest.Page) *servertest.Page {
		t.Helper()
		if p.Header.Get("Location") != "/transfer#work" {
			t.Fatalf("%d %q %s; want \"/transfer#work\"", p.Status, p.Header.Get("Location"), p.Body)
		}
		page := worked(ada, "/transfer")
		servertest.CheckPage(w, page)
		return page
	}
	content := func() string {
		m, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).GetMemory(t.Context(), "brought")
		if err != nil {
			return err.Error()
		}
		return m.Content
	}
	begun(bring(ada, memory("brought", "one"), [2]string{"look", "yes"})).Expect(http.StatusOK,
		"can be imported. Nothing was imported yet.")
	if got := content(); !strings.Contains(got, "no memory") && !strings.Contains(got, "not") {
		t.Errorf(`looking has brought in %q, want "no memory" in it or "not" in it`, got)
	}
	begun(bring(ada, memory("brought", "one"))).Expect(http.StatusOK, "Done <time",
		`<td>memory</td><td class="numeric">1</td><td class="numeric">0</td>`)
	begun(bring(ada, memory("brought", "one"))).Expect(http.StatusOK,
		`<td>memory</td><td class="numeric">0</td><td class="numeric">1</td>`)
	begun(bring(ada, memory("brought", hostileJSON))).Expect(http.StatusOK, "Skipped items",
		"Line 2, memory brought")
	if got := content(); got != "one" {
		t.Errorf("it is %q, want \"one\"", got)
	}
	begun(bring(ada, memory("brought", "two"), [2]string{"conflict", "replace"})).Expect(http.StatusOK,
		`<td class="numeric">1</td><td class="numeric">0</td></tr>`)
	if got := content(); got != "two" {
		t.Errorf("it is %q, want \"two\"", got)
	}
	begun(bring(ada, "nothing that was exported <b>")).Expect(http.StatusOK, "not an export of Souvenir", `role="alert"`)
	begun(bring(ada, memory("other", "one")+"{\"type\":\"memory\",\"id\":\""+strings.Repeat("x", 200)+
		"\"}\n")).Expect(http.StatusOK, "Line 3")

	for text, p := range map[string]*servertest.Page{
		"File is empty": bring(ada, ""), "File is missing": bring(ada, "no file"),
		"expected keep or replace": bring(ada, "x", [2]string{"conflict", "perhaps"}),
	} {
		servertest.CheckPage(w, p.Expect(http.StatusBadRequest, text))
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil {
		t.Error(err)
	} else {
		for _, file := range left {
			if strings.HasPrefix(file.Name(), "souvenir-import-") {
				t.Errorf(`%s is left behind, want no "souvenir-import-" at the beginning of the name`, file.Name())
			}
		}
	}
}

const hostileJSON = `<script>alert(1)</script>`

// One thing at a time: a second import gets an error that names the current work, and leaves nothing behind.
func TestAnImportWaitsForOtherWork(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	ada := w.SignedIn(servertest.Admin)
	server.BeginWork(w.Server, httptest.NewRequestWithContext(t.Context(), "POST", "/backup/work", nil), "check", nil)
	servertest.CheckPage(w, ada.Get("/transfer").Expect(http.StatusOK, "The check", ">Stop<"))
	w.SignedIn(servertest.Owner).Get("/transfer").Expect(http.StatusOK).Without("The check")
	servertest.CheckPage(w, bring(ada, "{}").Expect(http.StatusBadRequest, "The check has been running"))
	ada.LeadsTo(ada.Submit(ada.Get("/transfer"), "/backup/stop", nil), "/transfer?done=stopped")
	worked(ada, "/transfer").Without("The check") // the other page reports how it ended
}

// Only admins can import, and only with forms of this server's pages.
func TestWhoMayImport(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	export := "{\"souvenir\":\"export\",\"version\":1}\n{\"type\":\"memory\",\"id\":\"brought\",\"content\":\"x\"}\n"
	bring(w.SignedIn(servertest.Owner), export).Expect(http.StatusForbidden, "for admins")
	ada := w.SignedIn(servertest.Admin)
	for name, origin := range map[string]string{"no field": w.HTTP.URL, "another origin": "https://evil.example"} {
		body := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n" + export + "\r\n--x--\r\n"
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.HTTP.URL+"/transfer/import",
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		r.Header.Set("Origin", origin)
		if p := ada.Send(r); p.Status != http.StatusForbidden {
			t.Errorf("%s: %d %s; want %v", name, p.Status, p.Body, http.StatusForbidden)
		}
	}
	if _, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).GetMemory(t.Context(),
		"brought"); err == nil {
		t.Error("something was brought in, want an error")
	}
}
