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

// A file is stored with the memory that it belongs to, is listed by searches, and is read back.
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

// Files lists what is there; the bytes are read when a file is opened, from any place in it.
func ExampleStore_OpenFile() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	file, err := store.AddFile(ctx, souvenir.NewFile{Filename: "plan.txt", Tags: []string{"trip"}},
		strings.NewReader("Day 1: Porto. Day 2: Lisbon."))
	if err != nil {
		log.Fatal(err)
	}

	content, err := store.OpenFile(ctx, file.ID)
	if err != nil {
		log.Fatal(err)
	}
	defer content.Close()
	if _, err := content.Seek(14, io.SeekStart); err != nil {
		log.Fatal(err)
	}
	second, err := io.ReadAll(content)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(second))
	// Output: Day 2: Lisbon.
}
