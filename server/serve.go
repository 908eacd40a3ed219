package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir/server/internal/signin"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// ServeOptions configure [Serve]. Nil, and the zero value of each field, mean the default named there.
type ServeOptions struct {
	// Grace is how long running requests may continue after the context ends. Zero means 30 seconds.
	Grace time.Duration

	// Logger receives errors below HTTP, such as connections with other protocols. Nil means no logging.
	Logger *slog.Logger
}

const (
	defaultGrace  = 30 * time.Second
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10 // bytes
)

// Serve answers the requests on a listener until the context ends. Then it accepts no new ones, waits for running
// requests for a while, aborts the rest, and returns nil. It closes the listener.
//
// Clients that send their headers slowly, or keep idle connections, are cut off. [Server] itself limits the time
// for bodies and answers, as long as they make progress.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, options *ServeOptions) error {
	var o ServeOptions
	if options != nil {
		o = *options
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	requests, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	h := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return requests },
	}
	failed := make(chan error, 1)
	go web.Prepare()
	go func() { failed <- h.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(max(o.Grace, 0), defaultGrace))
	defer cancel()
	if err := h.Shutdown(patience); err != nil {
		o.Logger.Warn("requests were cancelled", "error", err)
		stop() // so that their store operations end cleanly
		return errors.Join(h.Close(), served(<-failed))
	}
	return served(<-failed)
}

// served returns nil for the error of a server that was shut down.
func served(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// SetupPath is the path, under the public URL, of the page on which the holder of an invitation for the first
// account creates it.
func SetupPath(value string) string { return signin.SetupPath(value) }

// InvitePath is the path, under the public URL, of the page on which the holder of an invitation creates an
// account.
func InvitePath(value string) string { return signin.InvitePath(value) }
