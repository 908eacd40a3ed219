package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/souvenir-ai/souvenir/tools"
)

// StdioOptions configure [ServeStdio]. Nil options mean the zero value of each field.
type StdioOptions struct {
	// MaxMessage is the maximum length of a message in bytes; a longer one is skipped and answered with an error. Zero
	// means [tools.MaxArguments] plus 64 KiB for the rest of the message.
	MaxMessage int

	// MaxRequests is the maximum number of requests answered at the same time, and of requests in a batch. The next
	// request is read only after one of them is answered, so a client that never reads its answers costs a bounded amount
	// of memory. Zero means 32.
	MaxRequests int

	// Grace is how long requests may go on after the end of the input or of the context. Zero means 10 seconds.
	Grace time.Duration

	// Logger receives messages that could not be parsed. Nil means silence.
	Logger *slog.Logger
}

const (
	defaultMaxMessage  = tools.MaxArguments + 64<<10
	defaultMaxRequests = 32
	defaultGrace       = 10 * time.Second
)

func (o *StdioOptions) withDefaults() StdioOptions {
	var full StdioOptions
	if o != nil {
		full = *o
	}
	if full.MaxMessage <= 0 {
		full.MaxMessage = defaultMaxMessage
	}
	if full.MaxRequests <= 0 {
		full.MaxRequests = defaultMaxRequests
	}
	if full.Grace <= 0 {
		full.Grace = defaultGrace
	}
	if full.Logger == nil {
		full.Logger = slog.New(slog.DiscardHandler)
	}
	return full
}

// ServeStdio serves one client over a pair of streams, in the protocol's transport "stdio": each message is JSON
// (RFC 8259) in one line of UTF-8. It returns nil when the input has ended, or the context is done, and every
// request that was read is answered. It returns an error when a stream fails, or when requests are still
// unanswered after [StdioOptions.Grace], because they take too long or because the client reads no answers.
//
// Unlike the SDK's own transport, it answers an invalid message with a JSON-RPC error and continues the session, and it
// loses no answer at the end of the input.
//
// It closes neither stream. A stream that blocks in a read or a write keeps a goroutine until it returns.
func ServeStdio(ctx context.Context, server *mcp.Server, in io.Reader, out io.Writer, options *StdioOptions) error {
	o := options.withDefaults()
	conn := newLineConn(in, out, o)
	// The end of the context must let requests finish, not cancel them.
	session, err := server.Connect(context.WithoutCancel(ctx), conn, nil)
	if err != nil {
		return fmt.Errorf("mcpserver: the session could not start: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- session.Wait() }()
	select {
	case err := <-done:
		return streamError(err)
	case <-ctx.Done():
		conn.stopReading()
	case <-conn.inputEnded:
	}
	timer := time.NewTimer(o.Grace)
	defer timer.Stop()
	select {
	case err := <-done:
		return streamError(err)
	case <-timer.C:
		unanswered := conn.unanswered()
		_ = conn.Close() // it cancels running requests, and always returns nil
		return fmt.Errorf("mcpserver: %d requests could not be answered within %s of the end of the input", unanswered,
			o.Grace)
	}
}

// streamError returns the error that ended a session early.
func streamError(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("mcpserver: the client can no longer be reached: %w", err)
}
