package server_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// A program with its own HTTP server mounts the service in it.
func ExampleNew() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	token, err := store.Accounts().AddToken(ctx, souvenir.NewToken{Name: "example"})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/memory/", http.StripPrefix("/memory", server.New(store, nil)))
	at := httptest.NewServer(mux)
	defer at.Close()

	call := `{"name": "memory", "arguments": {"action": "store", "content": "Deploys happen on Thursdays."}}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.URL+"/memory/tools/call", strings.NewReader(call))
	if err != nil {
		log.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token.Value)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.StatusCode, strings.Contains(string(body), "created_at"))
	// Output: 200 true
}
