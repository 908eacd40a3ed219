package souvenir

import (
	"context"
	"errors"
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Health says whether the store works as it should: nil, or what is wrong. ErrFull means that the disk is full: reading works, and deleting
// does while [Options].Reserve lasts, and nothing new is stored. It looks anew each time, so it is nil again by itself.
//
// It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Health(ctx context.Context) error {
	s, err := h.operator("Health")
	if err != nil {
		return err
	}
	if err := s.db.Read(ctx, func(tx db.Tx) error { _, err := tx.Exec(`SELECT 1`); return err }); err != nil {
		return wrap(err)
	}
	err = s.db.Upkeep().Room(ctx)
	if errors.Is(err, db.ErrFull) {
		return &Error{Kind: KindFull, Message: fmt.Sprintf("the disk is full: nothing new is stored until there is room; reading and deleting work (%v)", err), Err: err}
	}
	return wrap(err)
}
