package souvenir_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// Everything that one store holds goes into another one, with its ids, times and history.
func ExampleUpkeep_Export() {
	ctx := context.Background()
	from, to := open(), open()
	defer from.Close()
	defer to.Close()
	add(from, souvenir.NewMemory{Content: "The office plant is called Ferdinand."})

	var export bytes.Buffer
	if _, err := from.Upkeep().Export(ctx, &export, nil); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		report, err := to.Upkeep().Import(ctx, bytes.NewReader(export.Bytes()), nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("memories: %d added, %d unchanged\n", report.Counts["memory"].Added, report.Counts["memory"].Unchanged)
	}
	// Output:
	// memories: 1 added, 0 unchanged
	// memories: 0 added, 1 unchanged
}

// Memories from elsewhere need a header and one line each.
func ExampleUpkeep_Import() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	lines := `{"souvenir":"export","version":1}
{"type":"memory","content":"Ferdinand is watered on Mondays.","tags":["plants"],"created_at":"2024-05-01T08:00:00Z"}
{"type":"memory","content":"The printer is on the second floor.","collection_name":"office"}
`
	if _, err := store.Upkeep().Import(ctx, strings.NewReader(lines), nil); err != nil {
		log.Fatal(err)
	}
	found, err := store.Search(ctx, souvenir.Query{Text: "when to water Ferdinand", Limit: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Hits[0].Content)
	// Output: Ferdinand is watered on Mondays.
}
