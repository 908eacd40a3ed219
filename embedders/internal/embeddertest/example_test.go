package embeddertest_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/internal/embeddertest"
	"github.com/souvenir-ai/souvenir/embedders/openai"
)

func Example() {
	ctx := context.Background()
	_ = os.Setenv("OPENAI_API_KEY", embeddertest.Key)
	defer os.Unsetenv("OPENAI_API_KEY")

	embedder, err := openai.New(openai.Options{Key: os.Getenv("OPENAI_API_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	store, err := souvenir.Open(ctx, ":memory:", &souvenir.Options{Embedder: embedder}) // in a program: a file
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	fmt.Println(embedder.Model()) // nothing is sent before a memory or a question has to be embedded
	// Output: openai/text-embedding-3-small
}
