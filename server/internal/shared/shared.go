// Package shared keeps small, short-lived values that all servers on a store share: counts, and keys that are used up.
package shared

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/ratelimit"
)

// Values are values of one kind. While the store takes no writes, such as a read-only one, this server keeps its own
// in memory.
type Values struct {
	Store *souvenir.Store // the operator's; nil: all values are in memory
	Log   *slog.Logger    // may be nil if Store is
	Kind  string          // the beginning of their keys
	Life  time.Duration   // how long a value is kept after its last change
	Most  int             // how many this server keeps in memory

	mu  sync.Mutex
	own *ratelimit.Recent // of kept
}

// kept is a value in memory.
type kept struct {
	value []byte
	until time.Time
}

// Update changes the values of several distinct keys at once. change gets them in order, nil for a missing one, and
// replaces the ones that it changes. It may run again, so it must reset its results each time.
func (v *Values) Update(ctx context.Context, keys []string, change func(values [][]byte)) error {
	hashed := make([]string, len(keys))
	for i, key := range keys {
		sum := sha256.Sum256([]byte(key)) // keys may be long, and reveal who tries to sign in
		hashed[i] = v.Kind + "/" + base64.RawURLEncoding.EncodeToString(sum[:])
	}
	if v.Store == nil {
		v.updateOwn(hashed, change)
		return nil
	}
	err := v.Store.Accounts().UpdateSharedValues(ctx, souvenir.SharedValuesUpdate{Keys: hashed, Life: v.Life,
		Change: change})
	if err == nil || ctx.Err() != nil {
		return err
	}
	if !errors.Is(err, souvenir.ErrReadOnly) {
		v.Log.WarnContext(ctx, "rate limits count only on this server, not with the others on the store", "kind", v.Kind,
			"error", err)
	}
	v.updateOwn(hashed, change)
	return nil
}

func (v *Values) updateOwn(keys []string, change func(values [][]byte)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.own == nil {
		v.own = &ratelimit.Recent{Most: v.Most}
	}
	now := time.Now()
	values := make([][]byte, len(keys))
	for i, key := range keys {
		if k, ok := ratelimit.Get[kept](v.own, key); ok && now.Before(k.until) {
			values[i] = k.value
		}
	}
	change(values)
	for i, key := range keys {
		v.own.Set(key, kept{values[i], now.Add(v.Life)})
	}
}

// Size is the number of values in memory.
func (v *Values) Size() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.own == nil {
		return 0
	}
	return v.own.Size()
}

// Use uses up a key, and reports whether it was unused.
func (v *Values) Use(ctx context.Context, key string) (unused bool, err error) {
	err = v.Update(ctx, []string{key}, func(values [][]byte) {
		if unused = values[0] == nil; unused {
			values[0] = []byte{1}
		}
	})
	return unused && err == nil, err
}
