package souvenir_test

import (
	"context"
	"fmt"
	"log"

	"github.com/souvenir-ai/souvenir"
)

// A client registers itself, a user lets it in, and its token says for whom a view of the store works.
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
