package transformer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/transformer"
)

func Example() {
	ctx := context.Background()
	defer transformer.InFolderOfModels()()
	texts := []string{"Anna takes her tea without sugar.", "We deploy on Thursdays.", "The office closes at eight."}

	model, err := transformer.Open("models/multilingual-e5-small", &transformer.Options{Precision: transformer.Int8})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close() // after the store's Close
	store, err := souvenir.Open(ctx, "agent.db", &souvenir.Options{Embedder: model})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	mean, err := model.Mean(ctx, texts)
	if err != nil {
		log.Fatal(err)
	}
	centred, err := transformer.Open("models/multilingual-e5-small", &transformer.Options{Mean: mean})
	if err != nil {
		log.Fatal(err)
	}
	defer centred.Close()
	fmt.Println(centred.Dimensions() == model.Dimensions(), centred.Model() == model.Model())
	// Output: true false
}
