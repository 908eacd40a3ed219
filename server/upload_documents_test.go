package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/documents"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// reading starts a server that reads documents.
func reading(t *testing.T) *servertest.World {
	t.Helper()
	p := servertest.Template(t)
	d := p.Copy(t)
	store := d.Open(t, &souvenir.Options{Documents: documents.New(&documents.Options{TrustPDF: true})})
	w := servertest.Serve(t, p, store, server.Options{})
	w.Database = d
	return w
}

func TestUploadsSayWhatIsIndexedAndPagesFindIt(t *testing.T) {
	w := reading(t)
	pdf, err := os.ReadFile(filepath.Join("..", "documents", "testdata", "runbook.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	sent := upload(w, servertest.Owner, servertest.Part{Name: "file", Filename: "runbook.pdf", Kind: "application/pdf",
		Value: string(pdf)}, servertest.Part{Name: "project_id", Value: "shop"}).
		Expect(http.StatusOK, `"text":{"state":"indexed","passages":1,"characters":`)
	f := uploadedFile(sent)
	picture := uploadedFile(upload(w, servertest.Owner, servertest.Part{Name: "file", Filename: "dot.png", Kind: "",
		Value: "\x89PNG\r\n\x1a\n"}).
		Expect(http.StatusOK, `"state":"none"`, "files of type image/png are not read"))

	owner := w.SignedIn(servertest.Owner)
	servertest.CheckPage(w, owner.Get("/files/"+f.ID).Expect(http.StatusOK, "Found by its text: ", "in 1 passage"))
	servertest.CheckPage(w, owner.Get("/files/"+picture.ID).Expect(http.StatusOK,
		"Not found by its text: files of type image/png are not read"))
	const search = "/memories?q=where+are+backups+restored+and+verified"
	servertest.CheckPage(w, owner.Get(search).Expect(http.StatusOK, `<h2 id="documents">Files</h2>`,
		`href="/files/`+f.ID+`"`, "page 2", "Utrecht"))
	owner.Get(search + "&tag=daily").Expect(http.StatusOK).Without("Utrecht")
	w.SignedIn(servertest.Reader).Get(search).Expect(http.StatusOK, "Utrecht") // a member of the project
	w.SignedIn(servertest.Stranger).Get(search).Expect(http.StatusOK).Without("Utrecht", f.ID)
}

func TestUsersWithFilesButNoMemoriesCanSearch(t *testing.T) {
	longtest.Only(t)
	w := reading(t)
	stranger := w.SignedIn(servertest.Stranger)
	stranger.Get("/memories").Expect(http.StatusOK, "No memories yet").Without(`type="search"`)
	upload(w, servertest.Stranger, servertest.Part{Name: "file", Filename: "发布说明.txt", Kind: "text/plain",
		Value: "每周四晚上十点部署到生产环境。"}).Expect(http.StatusOK, `"state":"indexed"`)
	servertest.CheckPage(w, stranger.Get("/memories").Expect(http.StatusOK, "No memories yet", `type="search"`,
		"The search above finds your"))
	servertest.CheckPage(w, stranger.Get("/memories?q=什么时候部署到生产环境").Expect(http.StatusOK, "发布说明.txt",
		"No memories, but 1 file", "每周四晚上十点").Without("No memories yet", "No results"))
	stranger.Get("/memories?q=x&tag=none").Expect(http.StatusOK, `type="search"`, "No results")
}
