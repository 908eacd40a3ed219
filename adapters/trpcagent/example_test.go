package trpcagent_test

import (
	"context"
	"fmt"
	"log"

	"github.com/souvenir-ai/souvenir"
	adapter "github.com/souvenir-ai/souvenir/adapters/trpcagent"

	// In a program: trpc.group/trpc-go/trpc-agent-go/memory, session and tool.
	"github.com/souvenir-ai/souvenir/adapters/trpcagent/internal/framework/memory"
	"github.com/souvenir-ai/souvenir/adapters/trpcagent/internal/framework/session"
	"github.com/souvenir-ai/souvenir/adapters/trpcagent/internal/framework/tool"
)

func ExampleNew() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	var service memory.Service = adapter.New[memory.UserKey, memory.Key, memory.Entry, tool.Tool, session.Session](store,
		memory.ResolveAddOptions, memory.ResolveUpdateOptions, memory.ResolveUpdateResult, memory.ResolveSearchOptions)
	anna := memory.UserKey{AppName: "travel", UserID: "anna"}
	if err := service.AddMemory(ctx, anna, "Anna is allergic to nuts.", []string{"health"}); err != nil {
		log.Fatal(err)
	}
	found, err := service.SearchMemories(ctx, anna, "What is she allergic to?")
	if err != nil {
		log.Fatal(err)
	}
	for _, entry := range found {
		fmt.Println(entry.Memory.Memory, entry.Memory.Topics)
	}
	// Output:
	// Anna is allergic to nuts. [health]
}
