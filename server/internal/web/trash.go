package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// TrashUntil returns until when the trash keeps an item deleted now, in the reader's time zone; zero if the trash is
// off.
func TrashUntil(r *http.Request, store *souvenir.Store) (time.Time, error) {
	c, err := store.Upkeep().Configuration(r.Context())
	if err != nil || c.KeepTrash < 0 {
		return time.Time{}, err
	}
	return time.Now().Add(c.KeepTrash).In(ZoneOf(r).Location), nil
}

// DeletedWithUndo redirects from a deletion to a page that offers to restore the item from the trash; after that,
// it shows another page. With the trash off, the page only reports the deletion.
func (s *Site) DeletedWithUndo(r *http.Request, c request.Caller, path, back, text, id string) Redirect {
	entry, err := c.Store.Trash().Get(r.Context(), id)
	if err != nil {
		return s.Say(c, path, text)
	}
	text += " The trash keeps it until " + Date(entry.Until.In(ZoneOf(r).Location)) + "."
	return s.StepDone(c, path, Step{Text: text, Path: back, Back: func(ctx context.Context) error {
		_, err := c.Store.Trash().Restore(ctx, id)
		var known *souvenir.Error
		if errors.As(err, &known) && known.Kind == souvenir.KindConflict && known.Argument == "rule_type" {
			return ErrSavedSince
		}
		return err
	}})
}

// Say redirects to a page that reports an outcome, and offers no undo.
func (s *Site) Say(c request.Caller, path, text string) Redirect {
	return s.StepDone(c, path, Step{Text: text, Path: path})
}

// ErrSavedSince is the error for a step that cannot be undone.
var ErrSavedSince = &failure.Error{Status: http.StatusBadRequest,
	Message: "the text was saved again since, so this was not undone; its history has the past versions"}

// TrashNote says what happens to deleted items; the zero time means that the trash is off.
func TrashNote(n int, until time.Time) string {
	switch {
	case until.IsZero():
		return "This cannot be undone."
	case n == 1:
		return "It stays in the trash until " + Date(until) + ", and can be restored until then."
	}
	return "They stay in the trash until " + Date(until) + ", and can be restored until then."
}
