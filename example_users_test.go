package souvenir_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/souvenir-ai/souvenir"
)

// An account, a token for one of its programs, and what the program can access.
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

	if err := hers.Accounts().RevokeToken(ctx, token.ID); err != nil {
		log.Fatal(err)
	}
	_, err = store.Accounts().CheckToken(ctx, token.Value)
	fmt.Println(err)
	// Output:
	// Ann finds: The launch is on Friday.
	// may write: false
	// the token is not valid; it may have expired or been revoked
}

// A program with many users gives each a view of their own. Views cost nothing.
func ExampleAccess() {
	store := open()
	defer store.Close()
	for _, user := range []string{"anna", "ben"} {
		add(store.As(souvenir.Access{User: user}), souvenir.NewMemory{Content: "I am " + user + "."})
	}

	printFound(store.As(souvenir.Access{User: "ben"}), souvenir.Query{Text: "Who am I?"})
	// Output: I am ben.
}

// A view that is limited to one project sees only that project, and stores into it.
func ExampleAccess_projects() {
	store := open()
	defer store.Close()
	add(store,
		souvenir.NewMemory{Content: "Invoices go out on the first.", ProjectID: "billing"},
		souvenir.NewMemory{Content: "The salary list is in the safe."})

	billing := store.As(souvenir.Access{Projects: []string{"billing"}})
	stored := add(billing, souvenir.NewMemory{Content: "Refunds take three days."})[0]
	fmt.Println(stored.ProjectID)
	printFound(billing, souvenir.Query{Sort: souvenir.SortCreatedAsc})
	// Output:
	// billing
	// Invoices go out on the first.
	// Refunds take three days.
}

// Several applications can share one file. Their users may have the same ids, and are separate.
func ExampleAccess_namespaces() {
	store := open()
	defer store.Close()
	shop := store.As(souvenir.Access{Namespace: "shop", User: "anna"})
	crm := store.As(souvenir.Access{Namespace: "crm", User: "anna"}) // another user
	add(shop, souvenir.NewMemory{Content: "I like the blue kettle."})
	add(crm, souvenir.NewMemory{Content: "Anna's contract ends in May."})

	printFound(shop, souvenir.Query{Sort: souvenir.SortCreatedAsc})
	_, err := shop.GetProject(context.Background(), souvenir.ProjectRef{ID: "sales"}) // it belongs to the other namespace
	fmt.Println(errors.Is(err, souvenir.ErrNotFound))
	// Output:
	// I like the blue kettle.
	// true
}

// The users of an application are managed together, and deleted with all their data.
func ExampleAccounts_Namespace() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	shop := store.Accounts().Namespace("shop")
	if _, err := shop.AddUser(ctx, souvenir.NewUser{ID: "anna", Name: "Anna"}); err != nil {
		log.Fatal(err)
	}
	add(store.As(souvenir.Access{Namespace: "shop", User: "anna"}), souvenir.NewMemory{Content: "I like the blue kettle."})

	for user, err := range shop.Users(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if err := shop.DeleteUser(ctx, user.ID, &souvenir.DeletionOptions{WithMemories: true}); err != nil {
			log.Fatal(err)
		}
		fmt.Println("deleted", user.Name)
	}
	// Output: deleted Anna
}

func ExampleAccess_readOnly() {
	store := open()
	defer store.Close()
	reader := store.As(souvenir.Access{User: "anna", ReadOnly: true})

	_, err := reader.AddMemory(context.Background(), souvenir.NewMemory{Content: "Not stored."})
	fmt.Println(errors.Is(err, souvenir.ErrReadOnly))
	// Output: true
}

// A token is limited to scopes and projects; its value is shown once.
func ExampleAccounts_AddToken() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	accounts := store.Accounts()
	if _, err := accounts.AddUser(ctx, souvenir.NewUser{ID: "anna", Name: "Anna"}); err != nil {
		log.Fatal(err)
	}

	added, err := accounts.AddToken(ctx, souvenir.NewToken{
		User: "anna", Name: "editor", Scopes: []souvenir.Scope{souvenir.ScopeMemoryRead},
	})
	if err != nil {
		log.Fatal(err)
	}
	who, err := accounts.CheckToken(ctx, added.Value)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(who.User.Name, who.Allows(souvenir.ScopeMemoryRead), who.Allows(souvenir.ScopeMemoryWrite))
	// Output: Anna true false
}

// Preferences are a small JSON object for each user. Updates patch them like metadata.
func ExampleStore_UpdatePreferences() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	anna := store.As(souvenir.Access{User: "anna"})

	if _, err := anna.UpdatePreferences(ctx, map[string]any{"theme": "dark", "language": "pt"}); err != nil {
		log.Fatal(err)
	}
	preferences, err := anna.UpdatePreferences(ctx, map[string]any{"theme": nil})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(preferences)
	// Output: map[language:pt]
}

// A client registers itself, a user authorizes it, and its token gives a view of the store for that user.
func ExampleAccounts_Authorize() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	client, err := store.Accounts().RegisterClient(ctx, souvenir.ClientRegistration{
		ClientName: "Notebook", RedirectURIs: []string{"http://localhost/callback"},
		TokenEndpointAuthMethod: souvenir.AuthNone,
	})
	if err != nil {
		log.Fatal(err)
	}
	code, err := store.As(souvenir.Access{User: "ann"}).Accounts().Authorize(ctx, souvenir.Authorization{
		ClientID: client.ID, RedirectURI: "http://localhost:43117/callback",
		Scopes:        []souvenir.Scope{souvenir.ScopeMemoryRead},
		CodeChallenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", CodeChallengeMethod: "S256", // of RFC 7636, appendix B
	})
	if err != nil {
		log.Fatal(err)
	}
	tokens, err := store.Accounts().ExchangeCode(ctx, souvenir.CodeExchange{
		Client: souvenir.ClientCredentials{ID: client.ID}, Code: code.Code, RedirectURI: "http://localhost:43117/callback",
		Verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
		Issuer:   "https://memory.example", Audience: "https://memory.example/mcp",
	})
	if err != nil {
		log.Fatal(err)
	}
	who, err := store.Accounts().CheckAccessToken(ctx, souvenir.AccessTokenCheck{
		Token: tokens.AccessToken, Issuer: "https://memory.example", Audience: []string{"https://memory.example/mcp"},
	})
	if err != nil {
		log.Fatal(err)
	}
	view := store.As(who.Access)
	fmt.Println(view.Access().User, tokens.Scope, "read-only:", view.Access().ReadOnly)
	// Output: ann memory:read read-only: true
}
