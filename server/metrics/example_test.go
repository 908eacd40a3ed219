package metrics_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/metrics"
)

func ExampleNew() {
	ctx := context.Background()
	m := metrics.New(nil)
	store, err := souvenir.Open(ctx, ":memory:", &souvenir.Options{Hooks: []souvenir.Hooks{m.Hooks()}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	m.Watch(store)
	_ = server.New(store, &server.Options{OnRequest: m.Answered, OnCall: m.Called}) // serves everyone

	own := httptest.NewServer(m.Handler()) // in a program: server.Serve, on the operator's listener
	defer own.Close()
	if _, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "Tea at four."}); err != nil {
		log.Fatal(err)
	}
	answer, err := own.Client().Get(own.URL + "/metrics")
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "souvenir_memories ") || strings.HasPrefix(line, "souvenir_operations_total") {
			fmt.Print(line)
		}
	}
	// Output:
	// souvenir_memories 1
	// souvenir_operations_total{kind="store",method="AddMemories",outcome="ok"} 1
}
