package memories

import (
	"maps"
	"net/http"
	"time"

	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// memoryConflict describes another user's change since the form was opened.
type memoryConflict struct {
	Changed time.Time      // time of the change
	Merged  bool           // the texts were merged: the form has both changes
	Text    *textview.Diff // from their text to the one in the form; nil: equal
	Fields  []fieldConflict
	Theirs  textview.Cut // their text, where it is not in the form
	History string       // path of their version
}

// fieldConflict is a field that both users have changed.
type fieldConflict struct{ Label, Theirs, Yours string }

// conflict shows the form again, based on the other user's version: each field has this user's value if this user
// changed it, and else the other's. Texts with changes in different lines are merged. Nothing is stored.
func (s *Service) conflict(r *http.Request, c request.Caller, e *memoryEdit, base int) (any, error) {
	was, known, err := versionOf(r.Context(), c, e.ID, base)
	if err != nil {
		return nil, err
	}
	theirs, mine := typedOf(e.memoryHead), e.Typed
	before := mine // if the base version is gone, everything counts as changed
	if known {
		before = typedOfRevision(was, e.memoryHead)
	}
	conflict := &memoryConflict{Changed: e.UpdatedAt, History: e.historyPath(e.Revision)}
	mineBy, theirsBy, beforeBy := mine.fields(), theirs.fields(), before.fields()
	for _, f := range fieldNames {
		place, other, old := mineBy[f.Name], *theirsBy[f.Name], *beforeBy[f.Name]
		switch {
		case *place == other:
		case known && *place == old: // only they have changed it
			*place = other
		case known && other == old: // only this user has
		case f.Name == "content":
			conflict.mergeContent(place, old, other, known)
			conflict.Text = textview.Compare(other, *place, textview.MaxDiffShown)
			if !conflict.Merged {
				conflict.Theirs = textview.CutTo(other, shownContent)
			}
		default:
			conflict.Fields = append(conflict.Fields, fieldConflict{f.Label, other, *place})
		}
	}
	e.Typed, e.Base, e.Conflict = mine, e.Revision, conflict
	p, err := s.editPage(r, c, e)
	p.Status = http.StatusConflict
	return p, err
}

// mergeContent merges the other user's changes of a text into this user's, if they are in different lines.
func (m *memoryConflict) mergeContent(mine *string, before, theirs string, known bool) {
	if !known || len(before)+len(*mine)+len(theirs) > textview.MaxDiffed {
		return
	}
	edits, fits := udiff.Merge(udiff.Lines(before, *mine), udiff.Lines(before, theirs))
	if !fits {
		return
	}
	if merged, err := udiff.Apply(before, edits); err == nil {
		*mine, m.Merged = merged, true
	}
}

// typedOfRevision converts a past version into form values.
func typedOfRevision(r souvenir.Revision, now memoryHead) memoryTyped {
	h := memoryHead{Memory: souvenir.Memory{Content: r.Content, Metadata: map[string]any{}}}
	for key, value := range r.Metadata {
		switch key {
		case "custom": // own keys, under any names
			if custom, ok := value.(map[string]any); ok {
				maps.Copy(h.Metadata, custom)
				continue
			}
			h.Metadata[key] = value
		case "event_type":
			h.EventType = textview.Plain(value)
		case "state":
			h.State = textview.Plain(value)
		case "importance":
			h.Importance = souvenir.Importance(textview.Plain(value))
		case "classification":
			h.Classification = souvenir.Classification(textview.Plain(value))
		case "rule_type":
			h.RuleType = souvenir.RuleType(textview.Plain(value))
		case "project_id":
			h.ProjectID = textview.Plain(value)
		case "project_name":
		case "tags":
			h.Tags, _ = value.([]string)
		case "related_memory_ids":
			h.Related, _ = value.([]string)
		default:
			h.Metadata[key] = value
		}
	}
	t := typedOf(h)
	switch h.ProjectID {
	case "":
	case now.ProjectID:
		t.Project = now.Status.ProjectOwner + "/" + now.Status.ProjectID
	default:
		t.Project = now.Owner + "/" + h.ProjectID
	}
	return t
}
