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

// ownSignIns is a program with sign-ins of its own.
type ownSignIns struct{}

func (ownSignIns) SignedIn(r *http.Request) (user string, ok bool) {
	cookie, err := r.Cookie("user")
	return "anna", err == nil && cookie.Value == "anna"
}

// The program decides who is signed in.
func ExampleOptions_authenticate() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	var myApplication ownSignIns

	options := &server.Options{Authenticate: func(r *http.Request) (*souvenir.Principal, error) {
		user, ok := myApplication.SignedIn(r)
		if !ok {
			return nil, nil // not one of ours: the request's own token decides
		}
		return &souvenir.Principal{Access: souvenir.Access{User: user}}, nil
	}}
	handler := server.New(store, options)

	for _, user := range []string{"anna", "ben"} {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/tools/call",
			strings.NewReader(`{"name": "memory", "arguments": {"action": "store", "content": "Tea at four."}}`))
		r.Header.Set("Content-Type", "application/json")
		r.AddCookie(&http.Cookie{Name: "user", Value: user})
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(user, w.Code)
	}
	// Output:
	// anna 200
	// ben 401
}
