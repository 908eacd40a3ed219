package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/mcpserver"
)

// A program that clients start passes os.Stdin and os.Stdout.
func ExampleServeStdio() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	asked := strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
			`"clientInfo":{"name":"example","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"memory","arguments":{"action":"store","content":"The ` +
			`kettle is blue."}}}
`)
	var answered bytes.Buffer
	if err := mcpserver.ServeStdio(ctx, mcpserver.New(store, nil), asked, &answered, nil); err != nil {
		log.Fatal(err)
	}

	for line := range bytes.Lines(answered.Bytes()) {
		var answer struct {
			ID     int
			Result struct {
				ProtocolVersion   string
				StructuredContent struct{ Revision int }
			}
		}
		if err := json.Unmarshal(line, &answer); err != nil {
			log.Fatal(err)
		}
		fmt.Println(answer.ID, answer.Result.ProtocolVersion, answer.Result.StructuredContent.Revision)
	}
	// Output:
	// 1 2025-11-25 0
	// 2  1
}
