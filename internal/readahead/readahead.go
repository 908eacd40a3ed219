// Package readahead predicts the reads of a transaction, for an engine where each statement is a round trip. A page
// that is opened again reads mostly the same rows.
package readahead

import (
	"context"
	"strconv"
	"sync/atomic"
)

type key struct{}

// request is a call that resembles earlier ones with the same key.
type request struct {
	key string
	n   atomic.Int64
}

// WithKey returns a context for a request that reads about the same rows as an earlier one with the same key. Different
// callers must have different keys.
func WithKey(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, key{}, &request{key: name})
}

// Part returns a context for a part of the request that runs concurrently with others and has its own transactions.
// Without a request it returns ctx unchanged.
func Part(ctx context.Context, name string) context.Context {
	r, _ := ctx.Value(key{}).(*request)
	if r == nil {
		return ctx
	}
	return WithKey(ctx, name+" "+r.key)
}

// NextKey returns the key of the request's next transaction, "" for a context without a request.
func NextKey(ctx context.Context) string {
	r, _ := ctx.Value(key{}).(*request)
	if r == nil {
		return ""
	}
	return strconv.FormatInt(r.n.Add(1), 10) + " " + r.key
}
