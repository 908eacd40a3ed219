package secrets_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
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
