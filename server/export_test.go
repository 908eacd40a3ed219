package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// PageRoute is a line of the table, for tests outside of the package.
type PageRoute struct{ Method, Path, Needs string }

// roomsOnly is a server that has its routes, and no store.
func roomsOnly(publicURL string) *Server {
	s := &Server{options: Options{PublicURL: publicURL}, log: slog.New(slog.DiscardHandler)}
	s.addRooms(http.NewCrossOriginProtection())
	return s
}

// PageRoutes are the routes that are pages.
func PageRoutes() []PageRoute {
	s := roomsOnly("http://memory.example")
	var all []PageRoute
	for _, rt := range s.routes() {
		if rt.dialect == request.Pages {
			all = append(all, PageRoute{rt.Method, rt.Pattern, string(rt.Needs)})
		}
	}
	return all
}

// InterfaceRoutes are the routes that programs use.
func InterfaceRoutes() []PageRoute {
	s := roomsOnly("http://memory.example")
	var all []PageRoute
	for _, rt := range s.routes() {
		if rt.dialect == request.API {
			all = append(all, PageRoute{rt.Method, rt.Pattern, string(rt.Needs)})
		}
	}
	return all
}

// SetLoginClock makes a server's waits between tries of passwords go by another clock.
func SetLoginClock(s *Server, now func() time.Time) { s.signin.SetTryClock(now) }

// SetProviderClock makes the ways to an external provider and back end by another clock.
func SetProviderClock(s *Server, now func() time.Time) { s.signin.SetProviderClock(now) }

// ForgetProvider makes a server read what its provider says of itself with the next sign-in.
func ForgetProvider(s *Server) { s.signin.ForgetProvider() }

// BeginWork begins a piece of work as a page does; nil goes on until it is stopped.
func BeginWork(s *Server, r *http.Request, kind string, run func(souvenir.Progress) (any, error)) {
	err := s.dashboard.Upkeep.Begin(r, kind, "The "+kind,
		func(ctx context.Context, progress souvenir.Progress) (any, error) {
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

// SetConfirmClock makes a server measure by another clock how long ago people have shown who they are.
func SetConfirmClock(s *Server, now func() time.Time) { s.signin.SetConfirmClock(now) }

// FillLane takes all places of the lane of browsers that no one knows, until the test calls what it returns.
func FillLane(s *Server) (empty func()) { return s.signin.FillLane() }

// SetRecently changes how long ago people may have signed in, for what takes everything away.
func SetRecently(s *Server, most time.Duration) { s.signin.SetRecently(most) }

// BegunPerUser is how many calls of a user may have begun.
const BegunPerUser = begunPerUser

// HoldDoor takes all places at which a credential is checked, until the test calls the returned function.
func HoldDoor(s *Server, credential string) (leave func()) {
	var held []*fairqueue.Ticket
	for range max(s.options.MaxRunning, 2) - 1 {
		t := s.checks.Ticket()
		if err := t.Enter(context.Background(), credential); err != nil {
			panic(err)
		}
		held = append(held, t)
	}
	return func() {
		for _, t := range held {
			t.Leave()
		}
	}
}
