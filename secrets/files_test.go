package secrets_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/documents"
	"github.com/souvenir-ai/souvenir/secrets"
)

// fixed is a reader whose documents have one text.
type fixed souvenir.DocumentText

func (f fixed) ReadDocument(context.Context, souvenir.Document) (souvenir.DocumentText, error) {
	return souvenir.DocumentText(f), nil
}

func TestTextsOfDocumentsAreTreated(t *testing.T) {
	first, second := "the key "+awsKey+"\n", "and "+github+" twice\n"
	given := souvenir.DocumentText{Text: first + second + "end", Reason: "no pictures", Places: []souvenir.DocumentPlace{
		{Start: 0, Name: "page 1"}, {Start: 8, Name: "heading " + awsKey}, {Start: len(first), Name: "page 2, " + github},
		{Start: len(first + second), Name: "page 3"}}}
	kept := "the key [secret: aws-access-token]\nand [secret: github-pat] twice\n"
	for mode, want := range map[secrets.Mode]string{
		secrets.Off: fmt.Sprint(given),
		secrets.Flag: strings.Replace(fmt.Sprint(given), "no pictures",
			"possible secrets: aws-access-token, github-pat; no pictures", 1),
		secrets.Mask: fmt.Sprint(souvenir.DocumentText{Text: kept + "end",
			Places: []souvenir.DocumentPlace{{Start: 0, Name: "page 1"}, {Start: len(kept), Name: "page 3"}},
			Reason: "masked secrets: aws-access-token, github-pat; no pictures"}),
		secrets.Refuse: fmt.Sprint(souvenir.DocumentText{Reason: "it has what looks like a secret (aws-access-token), " +
			"which this store does not keep"}),
	} {
		got, err := newFinder(t, mode).Documents(fixed(given)).ReadDocument(t.Context(), souvenir.Document{})
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: got %+v, %v, want %s", mode, got, err, want)
		}
	}
	given.Places = given.Places[2:]
	given.Text = strings.Repeat(" ", len(first)) + second
	got, err := newFinder(t, secrets.Refuse).Documents(fixed(given)).ReadDocument(t.Context(), souvenir.Document{})
	if err != nil || !strings.Contains(got.Reason, "(github-pat near page 2)") {
		t.Errorf("got %+v, %v, want the page", got, err)
	}
}

func TestLongTextFilesAreStoredOnlyIfSecretsMayBe(t *testing.T) {
	long := strings.Repeat("word\n", 1<<20)
	for mode, want := range map[secrets.Mode]error{secrets.Flag: nil, secrets.Mask: souvenir.ErrInvalid,
		secrets.Refuse: souvenir.ErrInvalid} {
		_, err := open(t, mode).AddFile(t.Context(), souvenir.NewFile{}, strings.NewReader(long))
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", mode, err, want)
		}
	}
}

// word returns a DOCX file with a text, after a picture of some bytes.
func word(t *testing.T, picture int, text string) string {
	t.Helper()
	var file bytes.Buffer
	archive := zip.NewWriter(&file)
	w, err := archive.CreateHeader(&zip.FileHeader{Name: "word/media/picture"}) // stored as it is
	if err == nil {
		_, err = w.Write(make([]byte, picture))
	}
	if err == nil {
		w, err = archive.Create("word/document.xml")
	}
	if err == nil {
		_, err = fmt.Fprintf(w, `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>`+
			`<w:p><w:r><w:t>%s</w:t></w:r></w:p></w:body></w:document>`, text)
	}
	if err = errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

// slow is a reader that reads a document named slow until its context ends or it may go on.
type slow struct{ began, goOn chan struct{} }

func (s slow) ReadDocument(ctx context.Context, d souvenir.Document) (souvenir.DocumentText, error) {
	if d.Filename != "slow" {
		return souvenir.DocumentText{Text: "tea"}, nil
	}
	s.began <- struct{}{}
	select {
	case <-s.goOn:
		return souvenir.DocumentText{Text: "tea"}, nil
	case <-ctx.Done():
		return souvenir.DocumentText{}, ctx.Err()
	}
}

func TestASlowDocumentMakesNoOtherWait(t *testing.T) {
	f, reader := newFinder(t, secrets.Refuse), slow{make(chan struct{}), make(chan struct{})}
	f.Documents(reader)
	before := f.Hooks().BeforeFile
	texts := func(name string) *souvenir.FileTexts {
		return &souvenir.FileTexts{Filename: name, Other: &souvenir.Document{Filename: name}}
	}
	done := make(chan error)
	go func() { done <- before(t.Context(), souvenir.Operation{}, texts("slow")) }()
	<-reader.began
	if err := before(t.Context(), souvenir.Operation{}, texts("quick")); err != nil {
		t.Errorf("beside a slow document: got %v, want no error", err)
	}
	close(reader.goOn)
	if err := <-done; err != nil {
		t.Errorf("a slow document: got %v, want no error", err)
	}
}

// With refuse, new files are read before they are stored.
func TestDocumentsWithSecretsAreRefused(t *testing.T) {
	paged := fixed{Text: "a page " + awsKey, Places: []souvenir.DocumentPlace{{Start: 0, Name: "page 7"}}}
	for name, test := range map[string]struct {
		mode    secrets.Mode
		reader  souvenir.DocumentReader
		content string
		want    string
	}{
		"a secret":           {secrets.Refuse, documents.New(nil), word(t, 0, "the key "+awsKey), "(aws-access-token)"},
		"no secret":          {secrets.Refuse, documents.New(nil), word(t, 0, "the key is in the drawer"), ""},
		"masked":             {secrets.Mask, documents.New(nil), word(t, 0, "the key "+awsKey), ""},
		"a page":             {secrets.Refuse, paged, "%PDF-1.4\x00 and so on", "(aws-access-token near page 7)"},
		"it cannot be read":  {secrets.Refuse, documents.New(nil), "PK\x03\x04\x00 and no more", "a broken one"},
		"a large one":        {secrets.Refuse, documents.New(nil), word(t, 9<<20, "the key "+awsKey), "(aws-access-token)"},
		"large, no secret":   {secrets.Refuse, documents.New(nil), word(t, 9<<20, "the key is in the drawer"), ""},
		"too large":          {secrets.Refuse, documents.New(nil), word(t, 65<<20, "the key is in the drawer"), "at most 67"},
		"large and masked":   {secrets.Mask, documents.New(nil), word(t, 9<<20, "the key "+awsKey), ""},
		"too much text":      {secrets.Refuse, fixed{Text: "tea", Truncated: true}, word(t, 0, ""), "only the beginning"},
		"pages are broken":   {secrets.Refuse, fixed{Text: "tea", Reason: "1 of 2 pages"}, word(t, 0, ""), "1 of 2 pages"},
		"a picture":          {secrets.Refuse, fixed{Reason: "pictures are not read"}, word(t, 0, ""), ""},
		"documents are none": {secrets.Refuse, nil, word(t, 0, "the key "+awsKey), ""},
	} {
		finder := newFinder(t, test.mode)
		store, err := souvenir.Open(t.Context(), ":memory:", &souvenir.Options{Hooks: []souvenir.Hooks{finder.Hooks()},
			Documents: finder.Documents(test.reader)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.AddFile(t.Context(), souvenir.NewFile{Filename: "a.docx"}, strings.NewReader(test.content))
		if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, souvenir.ErrInvalid) ||
			!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), awsKey)) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}
