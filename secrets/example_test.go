package secrets_test

import (
	"context"
	"fmt"
	"log"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/documents"
	"github.com/souvenir-ai/souvenir/secrets"
)

func Example() {
	ctx := context.Background()

	finder, err := secrets.New(secrets.Mask)
	if err != nil {
		log.Fatal(err)
	}
	store, err := souvenir.Open(ctx, ":memory:", &souvenir.Options{Hooks: []souvenir.Hooks{finder.Hooks()},
		Documents: finder.Documents(documents.New(nil))})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	m, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "The key of the build is " + awsKey + "."})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Content)
	// Output: The key of the build is [secret: aws-access-token].
}
