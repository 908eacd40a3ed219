package server

import (
	"context"
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// PageRoute is a line of the table, for tests outside of the package.
type PageRoute struct{ Method, Path, Needs string }

// PageRoutes are the routes that are pages.
func PageRoutes() []PageRoute {
	s := &Server{options: Options{PublicURL: "http://memory.example"}}
	var all []PageRoute
	for _, rt := range s.routes() {
		if rt.speaks == speaksPages {
			all = append(all, PageRoute{rt.method, rt.pattern, string(rt.needs)})
		}
	}
	return all
}

// InterfaceRoutes are the routes that programs use.
func InterfaceRoutes() []PageRoute {
	s := &Server{options: Options{PublicURL: "http://memory.example"}}
	var all []PageRoute
	for _, rt := range s.routes() {
		if rt.speaks == speaksInterface {
			all = append(all, PageRoute{rt.method, rt.pattern, string(rt.needs)})
		}
	}
	return all
}

// SetLoginClock makes a server's waits between tries of passwords go by another clock.
func SetLoginClock(s *Server, now func() time.Time) { s.attempts.now = now }

// SetProviderClock makes the ways to an external provider and back end by another clock.
func SetProviderClock(s *Server, now func() time.Time) { s.provider.began.now = now }

// ForgetProvider makes a server read what its provider says of itself with the next sign-in.
func ForgetProvider(s *Server) { s.provider.until = time.Time{} }

// ProviderRoutes are the routes that are there with an external provider only.
func ProviderRoutes() []PageRoute {
	var all []PageRoute
	for _, rt := range (&Server{}).providerRoutes() {
		all = append(all, PageRoute{rt.method, rt.pattern, string(rt.needs)})
	}
	return all
}

// BeginWork begins a piece of work as a page does; nil goes on until it is stopped.
func BeginWork(s *Server, r *http.Request, kind string, run func(souvenir.Progress) (any, error)) {
	err := s.begin(r, kind, "The "+kind, func(ctx context.Context, progress souvenir.Progress) (any, error) {
		if run == nil {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return run(progress)
	})
	if err != nil {
		panic(err)
	}
}

// ProjectPath is the path of a project's pages.
func ProjectPath(p souvenir.Project) string { return projectPath(p) }

// LongSpan is how the settings tell a length of time.
func LongSpan(d time.Duration) string { return longSpan(d) }

// SetConfirmClock makes a server measure by another clock how long ago people have shown who they are.
func SetConfirmClock(s *Server, now func() time.Time) { s.now = now }

// FillLane takes all places of the lane of browsers that nobody knows, until the test calls what it returns.
func FillLane(s *Server) (empty func()) {
	var leave []func()
	for range cap(s.hashing.others.running) {
		done, err := s.hashing.others.enter(context.Background(), http.Header{})
		if err != nil {
			panic(err)
		}
		leave = append(leave, done)
	}
	waiting := cap(s.hashing.others.inside) - len(s.hashing.others.inside)
	for range waiting {
		s.hashing.others.inside <- struct{}{}
	}
	return func() {
		for range waiting {
			<-s.hashing.others.inside
		}
		for _, done := range leave {
			done()
		}
	}
}

// SetRecently changes how long ago people may have signed in, for what takes everything away.
func SetRecently(s *Server, most time.Duration) { s.recently = most }

// BegunPerUser is how many calls of a user may have begun.
const BegunPerUser = begunPerUser
