// Package metrics shows a store and its server to Prometheus. A program imports it if it wants metrics; others link
// neither it nor the client library.
//
//	m := metrics.New(nil)
//	store, err := souvenir.Open(ctx, "memory.db", &souvenir.Options{Hooks: []souvenir.Hooks{m.Hooks()}})
//	m.Watch(store)
//	handler := server.New(store, &server.Options{OnRequest: m.Answered, OnCall: m.Called})
//	go server.Serve(ctx, own, m.Handler(), nil) // on a listener of its own: metrics need no credential
//
// Labels have few values, all from fixed lists: routes, statuses, tools and their actions, methods and kinds of errors.
// No label is an id, a name or a text, so metrics reveal nothing about stored content or its users.
package metrics
