// Package server shows a store to the world over HTTP: the tools, files, projects, preferences and tokens of the
// interface, as an [http.Handler] that is mounted wherever it is wanted.
//
//	handler := server.New(store, &server.Options{PublicURL: "https://memory.example.com"})
//	err := server.Serve(ctx, listener, handler, nil)
//
// routes.go is the table of everything that is served; /openapi.json describes it to programs. Every request but those
// to the open routes carries a credential, works through the view of the store that the credential reaches, and can
// therefore see and do no more than [souvenir.Store.As] allows. What goes wrong has one form, errors.go, and nothing
// but what the caller did wrong is told to the caller.
package server
