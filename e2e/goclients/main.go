// Command goclients authorizes two OAuth clients written in Go, as a person would: golang.org/x/oauth2, with a secret,
// and the client of github.com/modelcontextprotocol/go-sdk, from a 401 to a tool call. e2e/oauth.sh runs it.
//
// It takes what it needs from the environment: SOUVENIR_AT, PERSON_NAME, PERSON_PASSWORD, CLIENT_ID and CLIENT_SECRET.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

const (
	clientCallback = "https://app.example/callback" // of the client with a secret
	ownCallback    = "http://127.0.0.1:4711/callback"
)

func main() {
	if err := authorizeClients(os.Getenv("SOUVENIR_AT")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// authorizeClients authorizes all clients, one after the other.
func authorizeClients(at string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, try := range []struct {
		what string
		run  func(context.Context, string) error
	}{
		{"golang.org/x/oauth2, with and without PKCE", plainOAuth},
		{"github.com/modelcontextprotocol/go-sdk", goSDK},
	} {
		if err := try.run(ctx, at); err != nil {
			return fmt.Errorf("%s: %w", try.what, err)
		}
		fmt.Println("ok", try.what)
	}
	return nil
}

// plainOAuth is the flow of the interface document, with an existing client.
func plainOAuth(ctx context.Context, at string) error {
	for _, style := range []oauth2.AuthStyle{oauth2.AuthStyleAutoDetect, oauth2.AuthStyleInHeader,
		oauth2.AuthStyleInParams} {
		config := &oauth2.Config{
			ClientID: os.Getenv("CLIENT_ID"), ClientSecret: os.Getenv("CLIENT_SECRET"), RedirectURL: clientCallback,
			Scopes:   []string{"memory:read"},
			Endpoint: oauth2.Endpoint{AuthURL: at + "/oauth/authorize", TokenURL: at + "/oauth/token", AuthStyle: style},
		}
		verifier := oauth2.GenerateVerifier()
		for _, pkce := range []bool{false, true} {
			var ask, redeem []oauth2.AuthCodeOption
			if pkce {
				ask, redeem = append(ask, oauth2.S256ChallengeOption(verifier)), append(redeem, oauth2.VerifierOption(verifier))
			}
			back, err := newPerson().answer(config.AuthCodeURL("the state", ask...))
			if err != nil {
				return err
			}
			answer := back.Query()
			if answer.Get("state") != "the state" || answer.Get("iss") != at ||
				!strings.HasPrefix(back.String(), clientCallback) {
				return fmt.Errorf("the answer is %s", back)
			}
			token, err := config.Exchange(ctx, answer.Get("code"), redeem...)
			if err != nil {
				return err
			}
			if token.Extra("scope") != "memory:read" || token.TokenType != "Bearer" {
				return fmt.Errorf("the token is %+v", token)
			}
			token.Expiry = time.Now().Add(-time.Hour) // so that it refreshes
			if err := listCollections(config.Client(ctx, token), at); err != nil {
				return err
			}
		}
	}
	return nil
}

func listCollections(client *http.Client, at string) error {
	response, err := client.Post(at+"/tools/call", "application/json", strings.NewReader(`{"name": "list_collections"}`))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("a call with a refreshed token is answered %s", response.Status)
	}
	return nil
}

// goSDK connects a client that knows only the address.
func goSDK(ctx context.Context, at string) error {
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "The Go SDK", RedirectURIs: []string{ownCallback},
			GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
		RequestRefreshToken: true,
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			back, err := newPerson().answer(args.URL)
			if err != nil {
				return nil, err
			}
			answer := back.Query()
			return &auth.AuthorizationResult{Code: answer.Get("code"), State: answer.Get("state"), Iss: answer.Get("iss")}, nil
		},
	})
	if err != nil {
		return err
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).Connect(ctx,
		&mcp.StreamableClientTransport{Endpoint: at + "/mcp", OAuthHandler: handler}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	result, err := session.CallTool(ctx,
		&mcp.CallToolParams{Name: "memory",
			Arguments: map[string]any{"action": "store", "content": "The Go client was here."}})
	if err != nil {
		return err
	}
	if result.IsError {
		return fmt.Errorf("the tool answers %v", result.Content)
	}
	return nil
}

// read returns the body of a page, up to a megabyte.
func read(response *http.Response) (string, error) {
	defer response.Body.Close()
	page, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return string(page), err
}

// unescaped returns an attribute of a page that contains an address.
func unescaped(page, before string, base *url.URL) (*url.URL, error) {
	_, rest, found := strings.Cut(page, before)
	if !found {
		return nil, fmt.Errorf("the page has no form: %.500s", page)
	}
	value, _, _ := strings.Cut(rest, `"`)
	return base.Parse(plain(value))
}
