// Package server serves a store over HTTP: the tools, files, projects, preferences and tokens of the API, as an
// [http.Handler] that can be mounted anywhere.
//
//	handler := server.New(store, &server.Options{PublicURL: "https://memory.example.com"})
//	err := server.Serve(ctx, listener, handler, nil)
//
// routes.go has the table of everything that is served, to which a few other files and the rooms add theirs;
// /openapi.json describes it for programs. Every request except those to the open routes carries a credential, works
// through that credential's view of the store, and is therefore limited to what [souvenir.Store.As] allows. All errors
// have one form, errors.go, and only errors that the caller caused are explained to the caller.
package server
