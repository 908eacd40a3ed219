package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ServeOptions change how [Serve] works. Nil, and the zero value of each field, mean the default named there.
type ServeOptions struct {
	// Grace is how long requests may go on that are being answered when the context ends. Zero means 30 seconds.
	Grace time.Duration

	// Logger hears what goes wrong below HTTP, such as connections that send something else. Nil means silence.
	Logger *slog.Logger
}

const (
	defaultGrace  = 30 * time.Second
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10 // bytes
)

// Serve answers the requests that come to a listener until the context ends. Then it takes no new ones, lets those that
// are being answered finish for a while, breaks off those that have not, and returns nil. It closes the listener.
//
// Clients that are slow to send their headers, or keep a connection for nothing, are cut off. The time for bodies and
// answers is limited by [Server] itself, which gives them as long as they move.
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
	go func() { failed <- h.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(max(o.Grace, 0), defaultGrace))
	defer cancel()
	if err := h.Shutdown(patience); err != nil {
		o.Logger.Warn("requests were broken off", "error", err)
		stop() // what they do to the store ends in good order
		return errors.Join(h.Close(), served(<-failed))
	}
	return served(<-failed)
}

// served is nil for the error with which a server says that it was shut down.
func served(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
