package server_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/documents"
	"github.com/souvenir-ai/souvenir/secrets"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// An invented key, in two parts so that scanners of this repository do not find it.
const awsKey = "AKIA" + "Y7QW3ERTU5OPASDF"

// treating starts a server that reads documents and treats secrets.
func treating(t *testing.T, mode secrets.Mode) *servertest.World {
	t.Helper()
	finder, err := secrets.New(mode)
	if err != nil {
		t.Fatal(err)
	}
	p := servertest.Template(t)
	d := p.Copy(t)
	store := d.Open(t, &souvenir.Options{Hooks: []souvenir.Hooks{finder.Hooks()},
		Documents: finder.Documents(documents.New(nil))})
	w := servertest.Serve(t, p, store, server.Options{})
	w.Database = d
	return w
}

// docx returns a Word document with a paragraph.
func docx(t *testing.T, paragraph string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	part, err := z.Create("word/document.xml")
	if err == nil {
		_, err = fmt.Fprintf(part, `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">`+
			`<w:body><w:p><w:r><w:t>%s</w:t></w:r></w:p></w:body></w:document>`, paragraph)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The lighthouse makes the files known to a search.
const lighthouse = "The lighthouse of the harbour\nis opened with " + awsKey + " on Thursdays.\n"

func TestFilesWithSecretsAreTreatedLikeMemories(t *testing.T) {
	const masked = "is opened with [secret: aws-access-token] on Thursdays."
	for mode, c := range map[secrets.Mode]struct{ text, binary, found string }{
		secrets.Flag: {"possible secrets: aws-access-token", "possible secrets: aws-access-token", awsKey},
		secrets.Mask: {"indexed", "masked secrets: aws-access-token", masked},
		secrets.Refuse: {"content has what looks like a secret (aws-access-token in line 2)",
			"content has what looks like a secret (aws-access-token), which this store does not keep", ""},
	} {
		t.Run(string(mode), func(t *testing.T) {
			w := treating(t, mode)
			before, status := w.FilesOf(servertest.Owner), http.StatusOK
			if mode == secrets.Refuse {
				status = http.StatusBadRequest
			}
			for _, content := range []string{`"content": ` + strconv.Quote(lighthouse),
				`"content_base64": "` + base64.StdEncoding.EncodeToString([]byte(lighthouse)) + `"`} {
				a, _ := w.Call(servertest.Owner, "upload_document", `{"filename": "harbour.txt", `+content+`}`)
				checkTreated(t, mode, a.Expect(status), c.text)
			}
			sent := upload(w, servertest.Owner, servertest.Part{Name: "file", Filename: "harbour.md", Kind: "text/markdown",
				Value: lighthouse})
			checkTreated(t, mode, sent.Expect(status), c.text)
			checkTreated(t, mode, upload(w, servertest.Owner, servertest.Part{Name: "file", Filename: "a.bin", Value: "a"},
				servertest.Part{Name: "description", Value: awsKey}), "")
			packed := docx(t, "The lighthouse of the harbour is opened with "+awsKey+" on Thursdays.")
			checkTreated(t, mode, upload(w, servertest.Owner, servertest.Part{Name: "file", Filename: "harbour.docx",
				Value: packed}).Expect(status), c.binary)
			if mode == secrets.Refuse && w.FilesOf(servertest.Owner) != before {
				t.Errorf("got %d files, want the %d before", w.FilesOf(servertest.Owner), before)
			}
			a, _ := w.Call(servertest.Owner, "memory", `{"action": "search", "query": "how is the lighthouse of the harbour `+
				`opened", "include_files": true}`)
			checkTreated(t, mode, a.Expect(http.StatusOK), c.found)
			if mode == secrets.Mask {
				checkMasked(t, w, uploadedFile(sent))
			}
		})
	}
}

// checkTreated checks that an answer has a text, and the secret only if it is kept.
func checkTreated(t *testing.T, mode secrets.Mode, a servertest.Answer, want string) {
	t.Helper()
	if !strings.Contains(a.Body, want) || mode != secrets.Flag && strings.Contains(a.Body, awsKey[4:]) {
		t.Errorf("got %s, want %q in it, and no secret", a.Body, want)
	}
}

// checkMasked checks that the content of a file is masked, and described as it is.
func checkMasked(t *testing.T, w *servertest.World, f gotFile) {
	t.Helper()
	kept := strings.ReplaceAll(lighthouse, awsKey, "[secret: aws-access-token]")
	sum := sha256.Sum256([]byte(kept))
	a := w.Do(servertest.Owner, "GET", "/api/files/"+f.ID, "").Expect(http.StatusOK)
	if a.Body != kept || f.Size != int64(len(kept)) || f.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("got %q with %d bytes and hash %s, want %q and its size and hash", a.Body, f.Size, f.SHA256, kept)
	}
}
