// Package expected predicts the reads of a transaction, for an engine where each statement is a round trip: a page that
// a person opens again reads mostly the same rows.
package expected

import (
	"context"
	"strconv"
	"sync/atomic"
)

type key struct{}

// request is a call that is like earlier ones with the same key.
type request struct {
	key string
	n   atomic.Int64
}

// Like marks a context as one of a request that reads about what an earlier one with the same key has read. The key
// must be different for different callers.
func Like(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, key{}, &request{key: name})
}

// Part marks a context as one of a part of the request that runs beside the others, and so has transactions of its own.
// It is the same context if it is not of a request.
func Part(ctx context.Context, name string) context.Context {
	r, _ := ctx.Value(key{}).(*request)
	if r == nil {
		return ctx
	}
	return Like(ctx, name+" "+r.key)
}

// Next returns the key of the request's next transaction, "" for a context that is not of such a request.
func Next(ctx context.Context) string {
	r, _ := ctx.Value(key{}).(*request)
	if r == nil {
		return ""
	}
	return strconv.FormatInt(r.n.Add(1), 10) + " " + r.key
}
