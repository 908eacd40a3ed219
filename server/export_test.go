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

// PageRoute is a row of the route table, for external tests.
type PageRoute struct{ Method, Path, Needs string }

// roomsOnly is a server with its routes but without a store.
func roomsOnly(publicURL string) *Server {
	s := &Server{options: Options{PublicURL: publicURL}, log: slog.New(slog.DiscardHandler)}
	s.addRooms(http.NewCrossOriginProtection())
	return s
}

// PageRoutes returns the routes of pages.
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

// InterfaceRoutes returns the routes for programs.
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

// SetLoginClock sets the clock for the waits between password attempts.
func SetLoginClock(s *Server, now func() time.Time) { s.signin.SetTryClock(now) }

// SetProviderClock sets the clock that limits sign-ins at an external provider.
func SetProviderClock(s *Server, now func() time.Time) { s.signin.SetProviderClock(now) }

// ForgetProvider makes a server read its provider's metadata again at the next sign-in.
func ForgetProvider(s *Server) { s.signin.ForgetProvider() }

// SetLateFrom sets from how many memories on their index is loaded after a page.
func SetLateFrom(s *Server, memories int) { s.site.LateFrom = memories }

// BeginWork begins work as a page does. If run is nil, the work goes on until it is stopped.
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

// SetConfirmClock sets the clock that measures the age of sign-ins and confirmations.
func SetConfirmClock(s *Server, now func() time.Time) { s.signin.SetConfirmClock(now) }

// FillLane takes all places of the lane for unknown browsers, until the test calls the returned function.
func FillLane(s *Server) (empty func()) { return s.signin.FillLane() }

// SetRecently sets how recent a sign-in must be for the most destructive changes.
func SetRecently(s *Server, most time.Duration) { s.signin.SetRecently(most) }

// BegunPerUser is how many calls a user may have started at once.
const BegunPerUser = begunPerUser

// HoldDoor takes all places for checking a credential, until the test calls the returned function.
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
