package keyring

import (
	"context"
	"errors"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
)

// PlaceOf returns a database whose errors say that they are about keys.
func PlaceOf(keys db.Keys) db.Keys { return place{keys} }

type place struct{ db.Keys }

// Write runs fn in a write transaction.
func (p place) Write(ctx context.Context, fn func(db.Tx) error) error {
	err := p.Keys.Write(ctx, fn)
	var known *fault.Error
	switch {
	case errors.Is(err, db.ErrReadOnly):
		known = fault.New(fault.KindReadOnly, "", "the key ring can only be read, so no user gets a key and none is erased; "+
			"open it for writing")
	case errors.Is(err, db.ErrFull):
		known = fault.New(fault.KindFull, "", "the disk of the key ring is full: %v", err)
	default:
		return err
	}
	known.Err = err
	return known
}

// Flush removes erased keys from the log, too.
func (p place) Flush(ctx context.Context) error {
	if f, able := p.Keys.(db.Flusher); able {
		return f.Flush(ctx)
	}
	return db.ErrUnsupported
}
