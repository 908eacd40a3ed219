package souvenir_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// A file is stored with the memory that it belongs to, is told of by searches, and read back.
func ExampleStore_AddFile() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	decision := add(store, souvenir.NewMemory{Content: "We chose SQLite; the minutes say why."})[0]

	file, err := store.AddFile(ctx, souvenir.NewFile{Filename: "minutes.md", MemoryID: decision.ID},
		strings.NewReader("# Minutes\nOne file, no server.\n"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(file.Filename, file.MIMEType, file.Size)

	found, err := store.Search(ctx, souvenir.Query{Text: "Which database?", IncludeFiles: true})
	if err != nil {
		log.Fatal(err)
	}
	content, err := store.OpenFile(ctx, found.Hits[0].Files[0].ID)
	if err != nil {
		log.Fatal(err)
	}
	defer content.Close()
	if _, err := io.Copy(os.Stdout, content); err != nil {
		log.Fatal(err)
	}
	// Output:
	// minutes.md text/markdown; charset=utf-8 31
	// # Minutes
	// One file, no server.
}
