package otel_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/otel"
)

func ExampleHooks() {
	ctx := context.Background()
	spans := tracetest.NewInMemoryExporter() // in a program: an exporter to a collector
	tracers := trace.NewTracerProvider(trace.WithSyncer(spans))

	hooks, err := otel.Hooks(&otel.Options{TracerProvider: tracers, StoreID: "agent.db"})
	if err != nil {
		log.Fatal(err)
	}
	store, err := souvenir.Open(ctx, ":memory:", &souvenir.Options{Hooks: []souvenir.Hooks{hooks}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	if _, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "Tea at four."}); err != nil {
		log.Fatal(err)
	}
	if _, err := store.Search(ctx, souvenir.Query{Text: "when is tea?"}); err != nil {
		log.Fatal(err)
	}
	for _, span := range spans.GetSpans() {
		fmt.Println(span.Name)
	}
	// Output:
	// create_memory agent.db
	// search_memory agent.db
}
