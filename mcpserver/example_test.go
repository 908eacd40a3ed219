package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/mcpserver"
)

// A server for Anna, over any transport of the SDK. Here the client is in the same program.
func ExampleNew() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := souvenir.Open(ctx, filepath.Join(dir, "agent.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	server := mcpserver.New(store.As(souvenir.Access{User: "anna"}), &mcpserver.Options{Version: "1.0.0"})
	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, there, nil); err != nil {
		log.Fatal(err)
	}

	session, err := mcp.NewClient(&mcp.Implementation{Name: "example", Version: "1.0.0"}, nil).Connect(ctx, here, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	for _, arguments := range []string{`{"action": "store", "content": "We deploy on Thursdays."}`,
		`{"action": "search", "query": "when do we deploy"}`} {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "memory", Arguments: json.RawMessage(arguments)})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.IsError)
	}
	page, err := session.ListResources(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range page.Resources {
		fmt.Println(r.Title)
	}
	// Output:
	// false
	// false
	// Projects
	// General rules
	// We deploy on Thursdays.
}
