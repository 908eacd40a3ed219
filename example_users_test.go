package souvenir_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/souvenir-ai/souvenir"
)

// An account, a token for a program of theirs, and what the program reaches with it.
func ExampleAccounts_CheckToken() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	ann, err := store.Accounts().AddUser(ctx, souvenir.NewUser{Name: "Ann", Password: "correct horse battery"})
	if err != nil {
		log.Fatal(err)
	}
	hers := store.As(souvenir.Access{User: ann.ID})
	if _, err := hers.AddMemory(ctx,
		souvenir.NewMemory{Content: "The launch is on Friday.", ProjectID: "apollo"}); err != nil {
		log.Fatal(err)
	}
	token, err := hers.Accounts().AddToken(ctx, souvenir.NewToken{
		Name: "status page", Scopes: []souvenir.Scope{souvenir.ScopeMemoryRead}, Projects: []string{"apollo"},
	})
	if err != nil {
		log.Fatal(err)
	}

	// Later, for each request that brings the token:
	principal, err := store.Accounts().CheckToken(ctx, token.Value)
	if err != nil {
		log.Fatal(err)
	}
	view := store.As(principal.Access)
	results, err := view.Search(ctx, souvenir.Query{Text: "launch"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(principal.User.Name, "finds:", results.Hits[0].Content)

	_, err = view.AddMemory(ctx, souvenir.NewMemory{Content: "The launch is off."})
	fmt.Println("may write:", !errors.Is(err, souvenir.ErrReadOnly))

	if err := hers.Accounts().DeleteToken(ctx, token.ID); err != nil {
		log.Fatal(err)
	}
	_, err = store.Accounts().CheckToken(ctx, token.Value)
	fmt.Println(err)
	// Output:
	// Ann finds: The launch is on Friday.
	// may write: false
	// the token is not valid; it may have expired or been deleted
}
