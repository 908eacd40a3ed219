package documents_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/documents"
)

func Example() {
	ctx := context.Background()
	content := strings.NewReader("The deploy window opens on Thursdays at nine.")

	store, err := souvenir.Open(ctx, ":memory:", &souvenir.Options{Documents: documents.New(nil)}) // in a program: a file
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	file, err := store.AddFile(ctx, souvenir.NewFile{Filename: "runbook.md"}, content)
	if err != nil {
		log.Fatal(err)
	}
	file, err = store.WaitIndexed(ctx, file.ID) // optional: it is indexed soon in any case
	if err != nil {
		log.Fatal(err)
	}
	found, err := store.Search(ctx, souvenir.Query{Text: "when does the deploy window open", Documents: 3})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range found.Documents {
		fmt.Println(d.Filename, d.Place, d.Text)
	}
	// Output: runbook.md line 1 The deploy window opens on Thursdays at nine.
}
