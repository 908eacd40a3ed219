package otel_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	otelapi "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/otel"
)

func ExampleHooks() {
	ctx := context.Background()
	spans := tracetest.NewInMemoryExporter() // in a program: an exporter to a collector
	tracers := trace.NewTracerProvider(trace.WithSyncer(spans))

	before := otelapi.GetTracerProvider()
	otelapi.SetTracerProvider(tracers)
	defer otelapi.SetTracerProvider(before)
	redaction := souvenir.Hooks{BeforeStore: func(_ context.Context, _ souvenir.Operation, m *souvenir.NewMemory) error {
		m.Content = strings.ReplaceAll(m.Content, "4711", "[code]")
		return nil
	}}

	hooks, err := otel.Hooks(&otel.Options{StoreID: "agent.db"}) // nil: the global providers
	if err != nil {
		log.Fatal(err)
	}
	store, err := souvenir.Open(ctx, ":memory:", &souvenir.Options{Hooks: []souvenir.Hooks{hooks, redaction}})
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
