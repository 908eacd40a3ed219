package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/souvenir-ai/souvenir/server"
)

// An unregistered client of the SDK, known only by the URL of its document, gets from a 401 to a tool call.
func TestAClientThatIsKnownByItsDocument(t *testing.T) {
	var documents *httptest.Server
	documents = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"client_id": %q, "client_name": "Editor", "redirect_uris": ["http://127.0.0.1/callback"], `+
			`"grant_types": ["authorization_code", "refresh_token"]}`, documents.URL+r.URL.Path)
	}))
	defer documents.Close()
	const at = "http://127.0.0.1:1" // for other addresses the SDK requires TLS
	w := servertest.New(t, server.Options{PublicURL: at, ClientDocuments: documents.Client()})
	b := w.SignedIn(servertest.Owner)
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: documents.URL + "/editor.json"},
		RedirectURL:                    "http://127.0.0.1:50505/callback",
		Client:                         reached(w),
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			asked, err := url.Parse(args.URL)
			if err != nil {
				return nil, err
			}
			b.Get(asked.RequestURI()).Stays(http.StatusOK, "described by 127.0.0.1", "Any program on this device")
			answer := b.Allow(asked.RequestURI(), nil).GoesTo("http://127.0.0.1:50505/callback?")
			return &auth.AuthorizationResult{Code: answer.Get("code"), State: answer.Get("state"), Iss: answer.Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	transport := &mcp.StreamableClientTransport{Endpoint: at + "/mcp", OAuthHandler: handler, HTTPClient: reached(w)}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "editor", Version: "1"}, nil).Connect(t.Context(), transport,
		nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(t.Context(),
		&mcp.CallToolParams{Name: "memory", Arguments: map[string]any{"action": "retrieve", "id": w.Private}})
	if err != nil || result.IsError {
		t.Errorf("got %+v, %v, want a result without an error", result, err)
	}
}

// reached returns a client for which the public URL leads to this world.
func reached(w *servertest.World) *http.Client {
	var dialer net.Dialer
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, w.HTTP.Listener.Addr().String())
		},
	}}
}
