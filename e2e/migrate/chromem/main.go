// Chromem makes the databases of chromem-go for the tests of internal/migrate.
package main

import (
	"context"
	"log"
	"os"
	"path/filepath"

	"github.com/philippgille/chromem-go"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: chromem FOLDER")
	}
	for name, compress := range map[string]bool{"plain": false, "compressed": true} {
		db, err := chromem.NewPersistentDB(filepath.Join(os.Args[1], name), compress)
		if err != nil {
			log.Fatal(err)
		}
		fill(db)
		if err := db.ExportToFile(filepath.Join(os.Args[1], name+".gob"), compress, ""); err != nil {
			log.Fatal(err)
		}
		encrypted := filepath.Join(os.Args[1], name+".enc")
		if err := db.ExportToFile(encrypted, compress, "0123456789abcdef0123456789abcdef"); err != nil {
			log.Fatal(err)
		}
	}
}

// fill adds three documents with their own short vectors.
func fill(db *chromem.DB) {
	ctx := context.Background()
	for name, documents := range map[string][]chromem.Document{
		"kitchen": {
			{ID: "kettle", Content: "The kettle is blue.", Metadata: map[string]string{"room": "kitchen"},
				Embedding: []float32{1, 0}},
			{ID: "größe", Content: "Der Topf fasst fünf Liter.", Embedding: []float32{0, 1}},
		},
		"garden": {{ID: "kettle", Content: "The rain barrel holds 200 litres.", Embedding: []float32{1, 0}}},
	} {
		embed := func(context.Context, string) ([]float32, error) { return []float32{1, 0}, nil }
		c, err := db.CreateCollection(name, nil, embed)
		if err != nil {
			log.Fatal(err)
		}
		if err := c.AddDocuments(ctx, documents, 1); err != nil {
			log.Fatal(err)
		}
	}
}
